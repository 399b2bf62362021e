import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { FlowTable } from '../../src/relay/udp-flow-table.ts';

test('behaves like a plain map of the same flows', () => {
  const key = fc.record({
    address: fc.constantFrom('192.0.2.1', '192.0.2.2', '::1'),
    port: fc.integer({ min: 1, max: 4 }),
  });
  const step = fc.record({ kind: fc.constantFrom('add' as const, 'remove' as const, 'remove stale' as const), key });
  fc.assert(
    fc.property(fc.array(step), (steps) => {
      const table = new FlowTable<{ readonly address: string; readonly port: number }>();
      const expected = new Map<string, { readonly address: string; readonly port: number }>();
      for (const { kind, key: flow } of steps) {
        const name = `${flow.address}|${flow.port}`;
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
        assert.equal(table.find(flow.address, flow.port), expected.get(`${flow.address}|${flow.port}`));
        const flowsOfClient = [...expected.values()].filter(({ address }) => address === flow.address);
        assert.equal(table.countOf(flow.address), flowsOfClient.length);
      }
    }),
  );
});

test('the least recently active flow of a client is the one that was touched or added first', () => {
  const port = fc.integer({ min: 1, max: 6 });
  fc.assert(
    fc.property(fc.array(port, { minLength: 1 }), (ports) => {
      const table = new FlowTable<{ readonly address: string; readonly port: number }>();
      const flows = new Map([...new Set(ports)].map((each) => [each, { address: 'client', port: each }]));
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
