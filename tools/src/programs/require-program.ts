import { catalog, type ProgramLookup, type ProgramName } from './catalog.ts';
import { findProgram } from './find-program.ts';

/** To be passed to `test`, `describe` or `suite` as its options. */
export type SkipOptions = { readonly skip?: string };

/**
 * Declares what a test needs: `describe('…', requireProgram('redis'), () => …)`. Skipped with the reason where it is missing;
 * under `WEIR_REQUIRE=all` a failure instead. `npm test` reads these calls, so the name is written out in the test file itself.
 */
export function requireProgram(...needs: readonly ProgramOrSet[]): SkipOptions {
  const missing = needs
    .flatMap(programsFor)
    .map(findProgram)
    .filter((program) => program.kind === 'missing');
  return skipFor(missing.map(missingProgramMessage));
}

/** The path of a program, for a fixture that is about to start it. */
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
  return `${name} is missing (${reason}); to get it: ${remedy}`;
}

/** What a test file may ask for: a program, or one of the sets that a suite needs whole. */
export type ProgramOrSet = ProgramName | ProgramSet;
type ProgramSet = 'redis' | 'kubernetes' | 'nodes' | 'images';

const PROGRAM_SETS: Readonly<Record<ProgramSet, readonly ProgramName[]>> = {
  redis: ['redis-server'],
  kubernetes: ['etcd', 'kube-apiserver', 'kube-controller-manager', 'kubectl'],
  // Beside a control plane: what runs real pods, and has the last word about the packets on their way to them.
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
  // Weir's own, built as in production on a base that stands for the official one.
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
