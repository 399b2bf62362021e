import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { test } from 'node:test';
import { formatHostPort } from '@weir/runtime';
import { eventually } from '@weir/testkit';
import type { RunningProxy } from '../../src/index.ts';
import { startFleet } from '../fixtures/fleet.ts';
import { webService } from '../fixtures/services.ts';

const ADMIN = { admin: { host: '127.0.0.1', port: 0 } };
const ENDPOINT = { address: '127.0.0.1', port: 9 };

test('metrics show the propagation time of each change, but not the age of a complete table', async () => {
  await using fleet = await startFleet();
  await fleet.serveSince(Date.now() - 40_000, webService([]));
  const proxy = await fleet.proxy({ ...ADMIN, workers: 2 });
  await proxy.ready;
  await applied(proxy, fleet);
  assert.deepEqual(await propagation(proxy), { count: 0, sum: 0, within30: 0 });

  await fleet.serveSince(Date.now() - 40_000, webService([ENDPOINT]));
  await applied(proxy, fleet);
  const { count, sum, within30 } = await propagation(proxy);
  assert.deepEqual({ count, within30 }, { count: 1, within30: 0 });
  assert.ok(sum >= 40 && sum < 60, `${sum} s`);

  await fleet.serve(webService([]));
  await applied(proxy, fleet);
  assert.equal((await propagation(proxy)).count, 1, 'a complete table has no change time');
});

test('counts a change dated into the future by another clock as 0 seconds', async () => {
  await using fleet = await startFleet();
  await fleet.serve(webService([]));
  const proxy = await fleet.proxy(ADMIN);
  await proxy.ready;
  await fleet.serveSince(Date.now() + 3_600_000, webService([ENDPOINT]));
  await applied(proxy, fleet);
  assert.deepEqual(await propagation(proxy), { count: 1, sum: 0, within30: 1 });
});

test('observes no change of a table that was read completely again', async () => {
  await using fleet = await startFleet();
  await fleet.serve(webService([]));
  const proxy = await fleet.proxy(ADMIN);
  await proxy.ready;
  const leader = await fleet.store.table.claimLeader();
  const opened = await fleet.store.table.openEpoch({ leader, id: randomUUID() });
  assert.ok(opened.kind === 'published');
  const publication = { leader, predecessor: opened.position, id: randomUUID(), changes: [], complete: true };
  await fleet.store.table.publish({ ...publication, changedAt: Date.now() });
  await applied(proxy, fleet);
  assert.equal((await propagation(proxy)).count, 0);
});

/** Waits until the proxy serves the latest table. */
async function applied(proxy: RunningProxy, fleet: Awaited<ReturnType<typeof startFleet>>): Promise<void> {
  const published = await fleet.store.table.meta();
  await eventually(() => assert.equal(proxy.view().applied?.id, published?.id));
}

async function propagation(proxy: RunningProxy): Promise<{ count: number; sum: number; within30: number }> {
  const { adminAddress } = proxy;
  assert.ok(adminAddress);
  const lines = (await (await fetch(`http://${formatHostPort(adminAddress)}/metrics`)).text()).split('\n');
  const value = (series: string): number => {
    const line = lines.find((each) => each.startsWith(`weir_table_propagation_seconds_${series} `));
    return Number(line?.split(' ')[1] ?? assert.fail(`${series} is not there`));
  };
  return { count: value('count'), sum: value('sum'), within30: value('bucket{le="30"}') };
}
