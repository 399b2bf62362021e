import { catalog, type ProgramLookup, type ProgramName } from './catalog.ts';
import { findProgram } from './find-program.ts';

/** Options for `test`, `describe` or `suite`. */
export type SkipOptions = { readonly skip?: string };

/**
 * Declares the programs that a test needs: `describe('…', requireProgram('redis'), () => …)`. The test is skipped with the reason
 * if a program is missing, and fails if `WEIR_REQUIRE=all`. `npm test` searches test files for these calls, so the name must be a
 * string literal in the test file itself.
 */
export function requireProgram(...needs: readonly ProgramOrSet[]): SkipOptions {
  const missing = needs
    .flatMap(programsFor)
    .map(findProgram)
    .filter((program) => program.kind === 'missing');
  return skipFor(missing.map(missingProgramMessage));
}

/** Returns the path of a program that a fixture is about to start. */
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

/** The needs that a test file may declare: a program, or a set of programs. */
export type ProgramOrSet = ProgramName | ProgramSet;
type ProgramSet = 'redis' | 'kubernetes' | 'nodes' | 'images';

const PROGRAM_SETS: Readonly<Record<ProgramSet, readonly ProgramName[]>> = {
  redis: ['redis-server'],
  kubernetes: ['etcd', 'kube-apiserver', 'kube-controller-manager', 'kubectl'],
  // Programs that run pods on nodes; tests also need the set `kubernetes`.
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
  // Weir's images, built as in production on a replacement of the official base image.
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
