import { catalog } from './catalog.ts';
import type { ProgramName } from './program.ts';

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
