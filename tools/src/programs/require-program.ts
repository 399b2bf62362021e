import { catalog, type ProgramLookup, type ProgramName } from './catalog.ts';
import { findProgram } from './find-program.ts';

/** Options for `test`, `describe` or `suite`. */
export type SkipOptions = { readonly skip?: string };

/**
 * Declares the programs that a test needs: `describe('…', requireProgram('redis'), () => …)`. If a program is missing, the test is
 * skipped with the reason, or fails with `WEIR_REQUIRE=all`. The names must be string literals in the test file itself, because
 * `npm test` searches the text of test files for these calls.
 */
export function requireProgram(...needs: readonly ProgramOrSet[]): SkipOptions {
  const missing = needs
    .flatMap(programsFor)
    .map(findProgram)
    .filter((program) => program.kind === 'missing');
  return skipFor(missing.map(missingProgramMessage));
}

/** Returns the path of a program for a fixture that starts the program. */
export function programPath(name: ProgramLookup['name']): string {
  const program = findProgram(name);
  if (program.kind === 'missing') throw new Error(missingProgramMessage(program));
  return program.path;
}

export function skipFor(reasons: readonly string[]): SkipOptions {
  if (reasons.length === 0) return {};
  if (process.env.WEIR_REQUIRE === 'all') throw new Error(`WEIR_REQUIRE=all, but ${reasons.join('; ')}`);
  return { skip: reasons.join('; ') };
}

export function missingProgramMessage({ name, reason, remedy }: Extract<ProgramLookup, { kind: 'missing' }>): string {
  return `${name} is missing (${reason}); to install: ${remedy}`;
}

/** What a test file may pass to `requireProgram`: the name of a program or of a set of programs. */
export type ProgramOrSet = ProgramName | ProgramSet;
type ProgramSet = 'redis' | 'kubernetes' | 'nodes' | 'images';

const PROGRAM_SETS: Readonly<Record<ProgramSet, readonly ProgramName[]>> = {
  redis: ['redis-server'],
  kubernetes: ['etcd', 'kube-apiserver', 'kube-controller-manager', 'kubectl'],
  // Programs that run pods on nodes. A test that needs this set also needs the set `kubernetes`.
  nodes: [
    'kube-scheduler',
    'kubelet',
    'kube-proxy',
    'containerd',
    'containerd-shim-runc-v2',
    'ctr',
    'host-local',
    'echo-pod',
    'coredns',
    'runc',
    'nft',
    'ip',
  ],
  // Weir's images. They are built as in production, but on a replacement of the official Node image.
  images: ['debootstrap', 'buildah', 'weir-images'],
};

export function programsFor(need: ProgramOrSet): readonly ProgramName[] {
  return isProgramSet(need) ? PROGRAM_SETS[need] : [need];
}

export function isProgramOrSet(name: string): name is ProgramOrSet {
  return Object.hasOwn(PROGRAM_SETS, name) || Object.hasOwn(catalog, name);
}

function isProgramSet(need: ProgramOrSet): need is ProgramSet {
  return Object.hasOwn(PROGRAM_SETS, need);
}
