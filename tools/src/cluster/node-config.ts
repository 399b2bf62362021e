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

/** Returns the configuration of the pod network: one bridge per node. The nodes have routes to the pods of other nodes. */
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

/**
 * Sets `restrict_oom_score_adj`, because lowering OOM scores needs CAP_SYS_RESOURCE, and most containers that run tests lack this
 * capability.
 */
export function containerdConfig({ directory, socket, cniPlugins, runc }: NodePaths): string {
  return `version = 3
root = '${directory}/containerd'
state = '${directory}/state'
[grpc]
  address = '${socket}'
# All nodes would use the same NRI socket.
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
    // Lets kubelet start with control groups of version 1. They suffice, because no test needs memory or CPU limits of pods.
    failCgroupV1: false,
    cgroupDriver: 'cgroupfs',
    cgroupsPerQOS: false,
    enforceNodeAllocatable: [],
    localStorageCapacityIsolation: false,
    evictionHard: { 'memory.available': '100Mi', 'nodefs.available': '1%', 'imagefs.available': '1%' },
  });
}
