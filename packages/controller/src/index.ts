export {
  type DirectoryOptions,
  DirectorySource,
  openDirectorySource,
} from './watch/directory/directory-source.ts';
export type { GivenNode } from './watch/directory/fleet-nodes.ts';
export type { Source, SourceSnapshot } from './watch/source.ts';
