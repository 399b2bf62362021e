// Translating and looking at what came of it, in few words.
import assert from 'node:assert/strict';
import { allocationsFor, entriesOf, NO_ALLOCATIONS, type Snapshot, type Translation, translate } from '@weir/model';
import { deepFreeze } from '@weir/testkit';
import { snapshotOf } from './snapshot.ts';

export const translateFresh = (parts: Partial<Snapshot>): Translation =>
  translate(deepFreeze(snapshotOf(parts)), NO_ALLOCATIONS);
export const translateAfter = (before: Translation, parts: Partial<Snapshot>): Translation =>
  translate(deepFreeze(snapshotOf(parts)), allocationsFor(before.table));

export function statusOf(translation: Translation, path: string): Translation['statuses'][number] {
  const found = translation.statuses.find(({ namespace, name }) => `${namespace}/${name}` === path);
  assert.ok(found, `no status of ${path}`);
  return found;
}

export const reasonOf = (translation: Translation, path: string): string => statusOf(translation, path).accepted.reason;
export const messageOf = (translation: Translation, path: string): string =>
  statusOf(translation, path).accepted.message;
export const portsOf = (translation: Translation, path: string): string[] => {
  const { uid } = statusOf(translation, path);
  return entriesOf(translation.table, 'listener')
    .filter((listener) => listener.service === uid)
    .map((listener) => `${listener.node}:${listener.port}`);
};
export const endpointsOf = (translation: Translation): string[] =>
  entriesOf(translation.table, 'endpoints').flatMap(({ endpoints }) =>
    endpoints.map(({ address, port }) => `${address}:${port}`),
  );
