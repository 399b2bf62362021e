import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { FlowTable } from '../../src/relay/udp-flow-table.ts';
import type { PeerAddress } from '../../src/transport/peer-address.ts';

test('behaves like a plain map of the same flows', () => {
  const key = fc.record({
    host: fc.constantFrom<number | string>(1, -2, '::1'),
    port: fc.integer({ min: 1, max: 4 }),
  });
  const step = fc.record({ kind: fc.constantFrom('add' as const, 'remove' as const, 'remove stale' as const), key });
  fc.assert(
    fc.property(fc.array(step), (steps) => {
      const table = new FlowTable<PeerAddress>();
      const expected = new Map<string, PeerAddress>();
      for (const { kind, key: flow } of steps) {
        const name = `${flow.host}|${flow.port}`;
        const known = expected.get(name);
        if (kind === 'add') {
          table.add(flow);
          expected.set(name, flow);
        } else if (kind === 'remove' && known !== undefined) {
          table.remove(known);
          expected.delete(name);
        } else if (known !== flow) table.remove({ ...flow });
      }
      assert.deepEqual(new Set(table.all()), new Set(expected.values()));
      for (const { key: flow } of steps) {
        assert.equal(table.find(flow.host, flow.port), expected.get(`${flow.host}|${flow.port}`));
        const flowsOfClient = [...expected.values()].filter(({ host }) => host === flow.host);
        assert.equal(table.countOf(flow.host), flowsOfClient.length);
      }
    }),
  );
});

test('the least recently active flow of a client is the one that was touched or added first', () => {
  const port = fc.integer({ min: 1, max: 6 });
  fc.assert(
    fc.property(fc.array(port, { minLength: 1 }), (ports) => {
      const table = new FlowTable<PeerAddress>();
      const flows = new Map([...new Set(ports)].map((each) => [each, { host: 'client', port: each }]));
      const order: number[] = [];
      for (const each of ports) {
        const flow = flows.get(each);
        if (flow === undefined) continue;
        if (order.includes(each)) table.touch(flow);
        else table.add(flow);
        order.splice(0, order.length, ...order.filter((other) => other !== each), each);
      }
      assert.equal(table.leastRecentlyActive('client')?.port, order[0]);
    }),
  );
});
