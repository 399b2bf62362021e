import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { HEARTBEAT_TTL_MS } from '../../src/limits.ts';
import { heartbeat } from './sample.ts';
import type { Subject } from './subject.ts';

export function heartbeatsContract(subject: Subject): void {
  describe(`the heartbeats of ${subject.name}`, () => {
    test('each life of a node has a greater number, whoever asks, and at least the one asked for', async () => {
      await using world = await subject.open();
      const [a, b] = [(await world.connect()).heartbeats, (await world.connect()).heartbeats];
      const first = await a.beginLife('n1', 1);
      assert.equal(await b.beginLife('n1', 1), first + 1);
      assert.equal(await a.beginLife('n1', first + 100), first + 100);
      assert.equal(await b.beginLife('n1', 5), first + 101);
    });

    test('a store that was wiped does not give out a life a second time', async () => {
      await using world = await subject.open();
      const { heartbeats } = await world.connect();
      const before = await heartbeats.beginLife('n1', 1);
      await world.wipe();
      // the state directory is lost as well; the clock is what is left, and a life takes longer than a second
      assert.ok((await heartbeats.beginLife('n1', 1)) >= before);
      assert.ok(before > 1_600_000_000);
    });

    test('are listed by node and life, each as it was last said', async () => {
      await using world = await subject.open();
      const [proxy, controller] = [(await world.connect()).heartbeats, (await world.connect()).heartbeats];
      const beats = [heartbeat('a', 2), heartbeat('a', 10), heartbeat('b', 1, { applied: null, listeners: [] })];
      for (const beat of beats.toReversed()) await proxy.beat(beat);
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
            why: '3 connects in a row failed',
            used: false,
          },
        ],
      };
      const changed = { ...second, draining: true, connections: 0, listeners, unhealthy };
      await proxy.beat({ ...second, connections: 6 });
      await proxy.beat(changed);
      assert.deepEqual(await controller.list(), [beats[0], changed, beats[2]]);
    });

    test('go after 3 s, and come back with the next beat in full', async () => {
      await using world = await subject.open();
      const { heartbeats } = await world.connect();
      const beat = heartbeat('n1', 1);
      await heartbeats.beat(beat);
      await world.after(HEARTBEAT_TTL_MS, async () => assert.deepEqual(await heartbeats.list(), []));
      await heartbeats.beat(beat);
      assert.deepEqual(await heartbeats.list(), [beat]);
    });

    test('come back in full after a wipe', async () => {
      await using world = await subject.open();
      const { heartbeats } = await world.connect();
      const beat = heartbeat('n1', 1);
      await heartbeats.beat(beat);
      await world.wipe();
      assert.deepEqual(await heartbeats.list(), []);
      await heartbeats.beat(beat);
      assert.deepEqual(await heartbeats.list(), [beat]);
    });

    test('one that leaves is gone at once, and the other life of its node stays', async () => {
      await using world = await subject.open();
      const { heartbeats } = await world.connect();
      await heartbeats.beat(heartbeat('n1', 1));
      await heartbeats.beat(heartbeat('n1', 2));
      await heartbeats.leave('n1', 1);
      assert.deepEqual(await heartbeats.list(), [heartbeat('n1', 2)]);
      await heartbeats.leave('n1', 1);
    });
  });
}
