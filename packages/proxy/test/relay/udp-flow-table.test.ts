import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { FlowTable } from '../../src/relay/udp-flow-table.ts';

test('the table holds what a plain list of the same flows holds', () => {
  const key = fc.record({
    address: fc.constantFrom('192.0.2.1', '192.0.2.2', '::1'),
    port: fc.integer({ min: 1, max: 4 }),
  });
  const step = fc.record({ kind: fc.constantFrom('add' as const, 'remove' as const, 'remove stale' as const), key });
  fc.assert(
    fc.property(fc.array(step), (steps) => {
      const table = new FlowTable<{ readonly address: string; readonly port: number }>();
      const list = new Map<string, { readonly address: string; readonly port: number }>();
      for (const { kind, key: of } of steps) {
        const name = `${of.address}|${of.port}`;
        const known = list.get(name);
        if (kind === 'add') {
          table.add(of);
          list.set(name, of);
        } else if (kind === 'remove' && known !== undefined) {
          table.remove(known);
          list.delete(name);
        } else if (known !== of) table.remove({ ...of });
      }
      assert.deepEqual(new Set(table.all()), new Set(list.values()));
      for (const { key: of } of steps) {
        assert.equal(table.find(of.address, of.port), list.get(`${of.address}|${of.port}`));
        const ofClient = [...list.values()].filter(({ address }) => address === of.address);
        assert.equal(table.countOf(of.address), ofClient.length);
      }
    }),
  );
});

test('the longest silent of a client is the one that was stirred, or added, first of all', () => {
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
