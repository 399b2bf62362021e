export { loadDefaultPolicy } from './config/default-policy.ts';
export type { Controller, ControllerOptions } from './control/controller.ts';
export { startController } from './control/start-controller.ts';
export {
  type KubernetesController,
  type KubernetesControllerOptions,
  startKubernetesController,
} from './control/start-kubernetes-controller.ts';
export { KubeApiError } from './kubernetes/api-error.ts';
export { KubeApi } from './kubernetes/kube-api.ts';
export { loadKubeConfig } from './kubernetes/kube-config.ts';
export { probeServer, type ServerProbe } from './kubernetes/probe-server.ts';
export { ReloadingKubeApi } from './kubernetes/reloaded-api.ts';
export { ALWAYS_LEADER, type Leadership } from './leader/leadership.ts';
export { EventWriter } from './status/event-writer.ts';
export { KubernetesStatus } from './status/kubernetes-status.ts';
export type { StatusSink } from './status/status-sink.ts';
export type { UsageArchive } from './usage/usage-archive.ts';
export {
  type DirectoryOptions,
  DirectorySource,
  openDirectorySource,
} from './watch/directory/directory-source.ts';
export type { CommandLineNode } from './watch/directory/fleet-nodes.ts';
export {
  KubernetesSource,
  type KubernetesSourceOptions,
  openKubernetesSource,
} from './watch/kubernetes/kubernetes-source.ts';
export {
  type LiveEndpointsOptions,
  type LiveEndpointsSource,
  openLiveEndpointsSource,
} from './watch/refined/refined-source.ts';
export type { Source, SourceSnapshot } from './watch/source.ts';
