import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import type { ListenerReport } from '@weir/model';
import { HEARTBEAT_TTL_MS } from '../../src/limits.ts';
import { heartbeat } from './sample-data.ts';
import type { StoreUnderTest } from './store-fixture.ts';

export function heartbeatsContract(subject: StoreUnderTest): void {
  describe(`the heartbeats of ${subject.name}`, () => {
    test('number each incarnation of a node higher, from every process, and at least as requested', async () => {
      await using world = await subject.open();
      const [a, b] = [(await world.connect()).heartbeats, (await world.connect()).heartbeats];
      const first = await a.beginIncarnation('n1', 1);
      assert.ok((await b.beginIncarnation('n1', 1)) > first);
      assert.equal(await a.beginIncarnation('n1', first + 1_000), first + 1_000);
      assert.equal(await b.beginIncarnation('n1', 5), first + 1_001);
    });

    test('do not repeat an incarnation number after a wipe', async () => {
      await using world = await subject.open();
      const { heartbeats } = await world.connect();
      const before = await heartbeats.beginIncarnation('n1', 1);
      await world.wipe();
      // Simulates a proxy that has lost its state directory too: `atLeast` is 1, so the number comes from the clock. Both numbers may be of
      // the same second.
      assert.ok((await heartbeats.beginIncarnation('n1', 1)) >= before);
      assert.ok(before > 1_600_000_000);
    });

    test('restore the incarnation number that a failover lost', async () => {
      await using world = await subject.open();
      const { heartbeats } = await world.connect();
      await heartbeats.beginIncarnation('n1', 1);
      const failOver = await world.checkpoint();
      const lost = await heartbeats.beginIncarnation('n1', 1);
      await failOver();
      await heartbeats.record(heartbeat('n1', lost));
      assert.ok((await heartbeats.beginIncarnation('n1', 1)) > lost);
    });

    test('list all nodes that ever had a proxy', async () => {
      await using world = await subject.open();
      const { heartbeats } = await world.connect();
      assert.deepEqual(await heartbeats.knownNodes(), new Set());
      const life = await heartbeats.beginIncarnation('n1', 1);
      await heartbeats.beginIncarnation('n2', 1);
      await heartbeats.record(heartbeat('n1', life));
      await heartbeats.remove('n1', life);
      assert.deepEqual(await heartbeats.knownNodes(), new Set(['n1', 'n2']));
    });

    test('are listed by node and incarnation with their last content', async () => {
      await using world = await subject.open();
      const [proxy, controller] = [(await world.connect()).heartbeats, (await world.connect()).heartbeats];
      const beats = [heartbeat('a', 2), heartbeat('a', 10), heartbeat('b', 1, { applied: null, listeners: [] })];
      for (const beat of beats.toReversed()) await proxy.record(beat);
      assert.deepEqual(await controller.list(), beats);
      const [, second] = beats;
      assert.ok(second !== undefined);
      const listeners = [{ id: 'l', service: 'u1', bound: false, listening: false, error: 'port 80 is taken' }];
      const unhealthy = {
        total: 1,
        endpoints: [
          {
            service: 'u1',
            protocol: 'TCP' as const,
            port: 80,
            endpoint: { address: '10.1.0.1', port: 8_080 },
            state: 'ejected' as const,
            why: '3 connection attempts in a row failed',
            used: false,
          },
        ],
      };
      const changed = { ...second, draining: true, connections: 0, listeners, unhealthy, transport: 'syscalls' };
      await proxy.record({ ...second, connections: 6 });
      await proxy.record(changed);
      assert.deepEqual(await controller.list(), [beats[0], changed, beats[2]]);
    });

    test('expire after 3 s and are complete again at the next record', async () => {
      await using world = await subject.open();
      const { heartbeats } = await world.connect();
      const beat = heartbeat('n1', 1);
      await heartbeats.record(beat);
      await world.eventually(HEARTBEAT_TTL_MS, async () => assert.deepEqual(await heartbeats.list(), []));
      await heartbeats.record(beat);
      assert.deepEqual(await heartbeats.list(), [beat]);
    });

    test('are complete again at the next record after a wipe', async () => {
      await using world = await subject.open();
      const { heartbeats } = await world.connect();
      const beat = heartbeat('n1', 1);
      await heartbeats.record(beat);
      await world.wipe();
      assert.deepEqual(await heartbeats.list(), []);
      await heartbeats.record(beat);
      assert.deepEqual(await heartbeats.list(), [beat]);
    });

    test('removes one incarnation at once and keeps the other incarnation of the node', async () => {
      await using world = await subject.open();
      const { heartbeats } = await world.connect();
      await heartbeats.record(heartbeat('n1', 1));
      await heartbeats.record(heartbeat('n1', 2));
      await heartbeats.remove('n1', 1);
      assert.deepEqual(await heartbeats.list(), [heartbeat('n1', 2)]);
      await heartbeats.remove('n1', 1);
    });

    test('transfer new, changed and removed listeners to existing and new readers', async () => {
      await using world = await subject.open();
      const [proxy, longReader] = [(await world.connect()).heartbeats, (await world.connect()).heartbeats];
      const reports = new Map<string, ListenerReport>();
      const put = (index: number, over: Partial<ListenerReport> = {}): void => {
        const id = `listener/n1/10.0.0.1/TCP/${index}`;
        reports.set(id, { id, service: `u${index}`, bound: true, listening: true, error: null, ...over });
      };
      const steps: (() => void)[] = [
        () => Array.from({ length: 1_000 }, (_, index) => put(index)),
        () => put(500, { listening: false }),
        () => {},
        () => put(1_000),
        () => reports.delete('listener/n1/10.0.0.1/TCP/7'),
        () => Array.from({ length: 2_000 }, (_, index) => put(2_000 + index)),
        () => Array.from({ length: 2_000 }, (_, index) => index % 2 === 0 && put(2_000 + index, { error: 'taken' })),
        () => reports.clear(),
        () => put(1),
      ];
      for (const [index, step] of steps.entries()) {
        step();
        await proxy.record(heartbeat('n1', 1, { listeners: [...reports.values()] }));
        const newReader = index % 2 === 0 ? (await world.connect()).heartbeats : longReader;
        for (const heartbeats of new Set([longReader, newReader])) {
          const listeners = (await heartbeats.list())[0]?.listeners ?? [];
          assert.deepEqual(new Map(listeners.map((each) => [each.id, each])), reports, `step ${index}`);
          assert.equal(listeners.length, reports.size);
        }
        if (index === 3) await world.wipe();
      }
    });

    test('return the same list for unchanged listeners, with several proxies in one process', async () => {
      await using world = await subject.open();
      const [proxies, controller] = [(await world.connect()).heartbeats, (await world.connect()).heartbeats];
      const beats = ['a', 'b'].map((node) =>
        heartbeat(node, 1, { listeners: [{ id: node, service: 'u', bound: true, listening: true, error: null }] }),
      );
      for (const beat of [...beats, ...beats]) await proxies.record(beat);
      const first = await controller.list();
      assert.deepEqual(first, beats);
      for (const beat of beats) await proxies.record({ ...beat, connections: 7 });
      const second = await controller.list();
      assert.deepEqual(
        second.map(({ connections }) => connections),
        [7, 7],
      );
      for (const [index, { listeners }] of second.entries()) assert.equal(listeners, first[index]?.listeners);
    });
  });
}
