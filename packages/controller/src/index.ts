export { type Controller, type ControllerOptions, startController } from './control/start-controller.ts';
export { ALWAYS_LEADER, type Leadership } from './leader/leadership.ts';
export type { StatusSink } from './status/status-sink.ts';
export {
  type DirectoryOptions,
  DirectorySource,
  openDirectorySource,
} from './watch/directory/directory-source.ts';
export type { GivenNode } from './watch/directory/fleet-nodes.ts';
export type { Source, SourceSnapshot } from './watch/source.ts';
