import { catalog } from './catalog.ts';
import type { ProgramName } from './program.ts';

/** What a test file may ask for: a program, or one of the sets that a suite needs whole. */
export type Need = ProgramName | NeedSet;

type NeedSet = 'redis' | 'kubernetes' | 'nodes' | 'images';

const sets: Readonly<Record<NeedSet, readonly ProgramName[]>> = {
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

export function programsFor(need: Need): readonly ProgramName[] {
  return isSet(need) ? sets[need] : [need];
}

export function isNeed(name: string): name is Need {
  return Object.hasOwn(sets, name) || Object.hasOwn(catalog, name);
}

function isSet(need: Need): need is NeedSet {
  return Object.hasOwn(sets, need);
}
