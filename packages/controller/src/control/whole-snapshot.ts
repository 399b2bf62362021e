import type { FleetSettings, Snapshot } from '@weir/model';
import type { SourceSnapshot } from '../watch/source.ts';
import type { ReadSnapshot } from './table-keeper.ts';
import type { Validities } from './validities.ts';

export interface Beside {
  readonly settings: FleetSettings;
  /** Absent: nobody listens to proxies. */
  readonly fleet?: Pick<Snapshot, 'absent'> | undefined;
  readonly validities: Validities;
}

/** What the source has read, and what it cannot know: settings, who is silent, what the time is. */
export function wholeSnapshot(read: SourceSnapshot, { settings, fleet, validities }: Beside): ReadSnapshot {
  const validity = read.secrets && validities.of(read.secrets);
  const absent = fleet?.absent;
  return Object.freeze({ ...read, settings, ...(validity && { validity }), ...(absent && { absent }) });
}
