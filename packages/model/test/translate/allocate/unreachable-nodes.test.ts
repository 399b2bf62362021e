import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import {
  entriesOf,
  NO_ALLOCATIONS,
  type NodeObject,
  type NodeUnreachability,
  type Snapshot,
  Translator,
  type TranslatorOutput,
} from '@weir/model';
import { node, port, service, snapshotOf } from '../../fixtures/snapshot.ts';
import { statusOf, translateAfter, translateFresh } from '../../fixtures/translation.ts';

describe('a node without a running proxy', () => {
  const unreachable = (...names: readonly string[]): Pick<Snapshot, 'unreachableNodes'> => ({
    unreachableNodes: new Map(names.map((each) => each.split(' ') as [string, NodeUnreachability])),
  });
  const three = ['1', '2', '3'].map((each) => node(`n${each}`, `192.0.2.${each}`));
  const web = service('a/web');
  const before = translateFresh({ nodes: three, services: [web] });
  const [first = '', second = ''] = statusOf(before, 'a/web').nodes;
  const third = three.map(({ name }) => name).find((name) => name !== first && name !== second) ?? '';

  test('gets no new Service and keeps its Services while it is silent', () => {
    const api = service('a/api', { ports: [port(81)] });
    const after = translateAfter(before, { nodes: three, services: [web, api], ...unreachable(`${first} silent`) });
    assert.deepEqual(statusOf(after, 'a/web').nodes, [first, second]);
    assert.deepEqual(statusOf(after, 'a/api').nodes, [second, third].sort());
  });

  test('is replaced when it is lost, and its Services do not move back when it returns', () => {
    const after = translateAfter(before, { nodes: three, services: [web], ...unreachable(`${first} lost`) });
    assert.deepEqual(statusOf(after, 'a/web').nodes, [second, third].sort());
    assert.ok(
      after.problems.some(
        ({ subject, message }) => subject === `Node ${first}` && /no proxy on this node/.test(message),
      ),
    );
    const back = translateAfter(after, { nodes: three, services: [web] });
    assert.deepEqual(statusOf(back, 'a/web').nodes, [second, third].sort());
  });

  test('keeps its Services when it is lost and no other node has free ports', () => {
    const other = service('b/web', { annotations: { 'weir.dev/nodes': '1' } });
    const alone = translateFresh({
      nodes: [three.find(({ name }) => name === third) as NodeObject],
      services: [other],
    });
    const combined = { ...before, table: { entries: new Map([...before.table.entries, ...alone.table.entries]) } };
    const after = translateAfter(combined, { nodes: three, services: [web, other], ...unreachable(`${first} lost`) });
    assert.deepEqual(statusOf(after, 'a/web').nodes, [first, second]);
  });

  test('is replaced by the first node whose ports are released', () => {
    const nodesOf = ({ table }: TranslatorOutput): readonly string[] | undefined =>
      entriesOf(table, 'service').find(({ uid }) => uid === web.uid)?.nodes;
    const nodes = three;
    const before = snapshotOf({ nodes, services: [web] });
    const translator = new Translator(before.settings, NO_ALLOCATIONS);
    translator.translate(before);
    const other = service('b/web', { annotations: { 'weir.dev/nodes': '1' } });
    const crowded = { ...before, services: [web, other] };
    translator.translate(crowded);
    const lost = { ...crowded, ...unreachable(`${first} lost`) };
    assert.deepEqual(nodesOf(translator.translate(lost)), [first, second]);
    const reserved = { ...other, ports: [port(22)] };
    const after = translator.translate({ ...lost, services: [web, reserved] });
    assert.deepEqual(nodesOf(after), [second, third].sort());
  });

  test('does not count as unreachable if no proxy of the pool answers', () => {
    const all = unreachable(`${first} lost`, `${second} lost`, `${third} silent`);
    const api = service('a/api', { ports: [port(81)] });
    const after = translateAfter(before, { nodes: three, services: [web, api], ...all });
    assert.deepEqual(statusOf(after, 'a/web').nodes, [first, second]);
    assert.equal(statusOf(after, 'a/api').nodes.length, 2);
  });
});
