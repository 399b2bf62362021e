import type { FleetSettings, Snapshot } from '@weir/model';
import type { SourceSnapshot } from '../watch/source.ts';
import type { PartialSnapshot } from './table-keeper.ts';
import type { CertificateValidityTracker } from './validities.ts';

export interface SnapshotContext {
  readonly settings: FleetSettings;
  /** Absent: nobody listens to proxies. */
  readonly fleet?: Pick<Snapshot, 'unreachableNodes'> | undefined;
  readonly validities: CertificateValidityTracker;
}

/** What the source has read, and what it cannot know: settings, who is silent, what the time is. */
export function completeSnapshot(
  read: SourceSnapshot,
  { settings, fleet, validities }: SnapshotContext,
): PartialSnapshot {
  const validity = read.secrets && validities.validityOf(read.secrets);
  const unreachableNodes = fleet?.unreachableNodes;
  return Object.freeze({
    ...read,
    settings,
    ...(validity && { validity }),
    ...(unreachableNodes && { unreachableNodes }),
  });
}
