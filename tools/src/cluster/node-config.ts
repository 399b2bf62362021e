import { join } from 'node:path';
import { DNS_ADDRESS } from './dns.ts';
import type { NodeNetwork } from './network.ts';
import { PAUSE_IMAGE } from './pod-images.ts';

export type NodePaths = {
  /** Data and settings of the node. */
  readonly directory: string;
  readonly socket: string;
  readonly cniPlugins: string;
  readonly runc: string;
};

/** The network of pods: a bridge of the node; the way to the other nodes' pods are routes. */
export function cniConfig({ podCidr }: NodeNetwork, { directory }: NodePaths): string {
  return JSON.stringify({
    cniVersion: '1.0.0',
    name: 'pods',
    plugins: [
      {
        type: 'bridge',
        bridge: 'cni0',
        isGateway: true,
        ipMasq: false,
        hairpinMode: true,
        ipam: {
          type: 'host-local',
          dataDir: join(directory, 'ipam'),
          ranges: [[{ subnet: podCidr }]],
          routes: [{ dst: '0.0.0.0/0' }],
        },
      },
    ],
  });
}

/** Without CAP_SYS_RESOURCE, as in most containers, nobody may make a process less likely to be killed for memory. */
export function containerdConfig({ directory, socket, cniPlugins, runc }: NodePaths): string {
  return `version = 3
root = '${directory}/containerd'
state = '${directory}/state'
[grpc]
  address = '${socket}'
# Its socket has one place, and there are several nodes.
[plugins.'io.containerd.nri.v1.nri']
  disable = true
[plugins.'io.containerd.cri.v1.images'.pinned_images]
  sandbox = '${PAUSE_IMAGE}'
[plugins.'io.containerd.cri.v1.runtime']
  restrict_oom_score_adj = true
  [plugins.'io.containerd.cri.v1.runtime'.cni]
    bin_dirs = ['${cniPlugins}']
    conf_dir = '${directory}/cni'
  [plugins.'io.containerd.cri.v1.runtime'.containerd.runtimes.runc]
    runtime_type = 'io.containerd.runc.v2'
    options = {BinaryName = '${runc}', SystemdCgroup = false}
`;
}

export function kubeletConfig({ podCidr }: NodeNetwork, { directory, socket }: NodePaths): string {
  return JSON.stringify({
    apiVersion: 'kubelet.config.k8s.io/v1beta1',
    kind: 'KubeletConfiguration',
    authentication: { anonymous: { enabled: true }, webhook: { enabled: false } },
    authorization: { mode: 'AlwaysAllow' },
    containerRuntimeEndpoint: `unix://${socket}`,
    podCIDR: podCidr,
    clusterDNS: [DNS_ADDRESS],
    clusterDomain: 'cluster.local',
    staticPodPath: join(directory, 'static-pods'),
    podLogsDir: join(directory, 'pod-logs'),
    resolvConf: '',
    failSwapOn: false,
    // Old control groups still do where memory and CPU of pods need not be enforced.
    failCgroupV1: false,
    cgroupDriver: 'cgroupfs',
    cgroupsPerQOS: false,
    enforceNodeAllocatable: [],
    localStorageCapacityIsolation: false,
    evictionHard: { 'memory.available': '100Mi', 'nodefs.available': '1%', 'imagefs.available': '1%' },
  });
}
