// What becomes of a node whose proxy is silent, for a while or for good.
import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import {
  type Absence,
  type Decided,
  entriesOf,
  NOTHING_HELD,
  type NodeObject,
  type Snapshot,
  Translator,
} from '@weir/model';
import { node, port, service, snapshotOf } from '../build/snapshot.ts';
import { fresh, next, statusOf } from '../build/translation.ts';

describe('a node whose proxy does not answer', () => {
  const absent = (...names: readonly string[]): Pick<Snapshot, 'absent'> => ({
    absent: new Map(names.map((each) => each.split(' ') as [string, Absence])),
  });
  const three = ['1', '2', '3'].map((each) => node(`n${each}`, `192.0.2.${each}`));
  const web = service('a/web');
  const before = fresh({ nodes: three, services: [web] });
  const [first = '', second = ''] = statusOf(before, 'a/web').nodes;
  const third = three.map(({ name }) => name).find((name) => name !== first && name !== second) ?? '';

  test('and has been silent for a while only: nothing new is put there, and who is there stays', () => {
    const api = service('a/api', { ports: [port(81)] });
    const after = next(before, { nodes: three, services: [web, api], ...absent(`${first} silent`) });
    assert.deepEqual(statusOf(after, 'a/web').nodes, [first, second]);
    assert.deepEqual(statusOf(after, 'a/api').nodes, [second, third].sort());
  });

  test('and is lost: another takes its place, which keeps it when it is back', () => {
    const after = next(before, { nodes: three, services: [web], ...absent(`${first} lost`) });
    assert.deepEqual(statusOf(after, 'a/web').nodes, [second, third].sort());
    assert.ok(
      after.problems.some(
        ({ subject, message }) => subject === `Node ${first}` && /no proxy of this node/.test(message),
      ),
    );
    const back = next(after, { nodes: three, services: [web] });
    assert.deepEqual(statusOf(back, 'a/web').nodes, [second, third].sort());
  });

  test('and is lost where no other has room: it keeps its place', () => {
    const other = service('b/web', { annotations: { 'weir.dev/nodes': '1' } });
    const alone = fresh({ nodes: [three.find(({ name }) => name === third) as NodeObject], services: [other] });
    const held = { ...before, table: { entries: new Map([...before.table.entries, ...alone.table.entries]) } };
    const after = next(held, { nodes: three, services: [web, other], ...absent(`${first} lost`) });
    assert.deepEqual(statusOf(after, 'a/web').nodes, [first, second]);
  });

  test('and is lost where no other has room: the first that is given up takes its place, whatever becomes of who had it', () => {
    const nodesOf = ({ table }: Decided): readonly string[] | undefined =>
      entriesOf(table, 'service').find(({ uid }) => uid === web.uid)?.nodes;
    const nodes = three;
    const before = snapshotOf({ nodes, services: [web] });
    const translator = new Translator(before.settings, NOTHING_HELD);
    translator.next(before);
    const other = service('b/web', { annotations: { 'weir.dev/nodes': '1' } });
    const crowded = { ...before, services: [web, other] };
    translator.next(crowded);
    const lost = { ...crowded, ...absent(`${first} lost`) };
    assert.deepEqual(nodesOf(translator.next(lost)), [first, second]);
    const reserved = { ...other, ports: [port(22)] };
    const after = translator.next({ ...lost, services: [web, reserved] });
    assert.deepEqual(nodesOf(after), [second, third].sort());
  });

  test('but none of the pool does: all are as they were', () => {
    const all = absent(`${first} lost`, `${second} lost`, `${third} silent`);
    const api = service('a/api', { ports: [port(81)] });
    const after = next(before, { nodes: three, services: [web, api], ...all });
    assert.deepEqual(statusOf(after, 'a/web').nodes, [first, second]);
    assert.equal(statusOf(after, 'a/api').nodes.length, 2);
  });
});
