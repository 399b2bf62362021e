export { loadDefaultPolicy } from './config/default-policy.ts';
export type { Controller, ControllerOptions } from './controller/controller.ts';
export { startController } from './controller/controller.ts';
export {
  type KubernetesController,
  type KubernetesControllerOptions,
  startKubernetesController,
} from './controller/kubernetes-controller.ts';
export { KubeApi, ReloadingKubeApi } from './kubernetes/kube-api.ts';
export { KubeApiError } from './kubernetes/kube-api-error.ts';
export { loadKubeConfig, probeServer, type ServerProbe } from './kubernetes/kube-config.ts';
export { ALWAYS_LEADER, type Leadership } from './leader/leadership.ts';
export { EventWriter } from './status/event-writer.ts';
export { KubernetesStatus } from './status/kubernetes-status.ts';
export type { StatusSink } from './status/status-sink.ts';
export type { UsageArchive } from './usage/tenant-usage.ts';
export {
  type DirectoryOptions,
  DirectorySource,
  openDirectorySource,
} from './watch/directory/directory-source.ts';
export type { CommandLineNode } from './watch/directory/implied-objects.ts';
export {
  KubernetesSource,
  type KubernetesSourceOptions,
} from './watch/kubernetes/kubernetes-source.ts';
export {
  type LiveEndpointsOptions,
  type LiveEndpointsSource,
  openLiveEndpointsSource,
} from './watch/live-endpoints/live-endpoints-source.ts';
export type { Source, SourceSnapshot } from './watch/source.ts';
