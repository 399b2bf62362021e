// Tenant a writes whatever it likes, right and wrong; tenant b serves clients over TCP and UDP all the while, through real proxies.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { entriesOf, type RoutingTable } from '@weir/model';
import fc from 'fast-check';
import { hostileManifests } from './hostile-manifests.ts';
import { startIsolationFleet } from './isolation-fleet.ts';

const RUNS = 80;
/** Of a run that hangs; one that is slow is to end. */
const timeout = 240_000;

test('whatever a tenant writes, no connection of another ends, every byte arrives, and what it is told stays', {
  timeout,
}, async (t) => {
  await using world = await startIsolationFleet();
  await using clients = await world.connect();
  const before = await world.stateOfB();
  assert.deepEqual(
    before.views.map(({ state }) => state),
    ['Programmed', 'Programmed', 'Programmed'],
  );
  const reasons = new Map<string, number>();
  let wrong = 0;
  let shared = 0;
  await fc.assert(
    fc.asyncProperty(hostileManifests(world.targets), async (files) => {
      const [table] = await Promise.all([world.apply(files), clients.echoAll()]);
      await Promise.all([clients.echoAll(), clients.connectNewClients()]);
      assert.deepEqual(await world.stateOfB(), before);
      for (const reason of reasonsOfA(table)) reasons.set(reason, (reasons.get(reason) ?? 0) + 1);
      shared += sharesOfA(table);
      wrong += entriesOf(table, 'problem').filter(({ problem }) => problem.code.startsWith('Invalid')).length;
    }),
    { numRuns: RUNS, endOnFailure: true },
  );
  t.diagnostic(`${[...reasons].map(([reason, count]) => `${count} ${reason}`).join(', ')}; ${wrong} mistakes in files`);
  t.diagnostic(`${shared} shares of a port with b`);
  assert.ok((reasons.get('Accepted') ?? 0) > 0 && reasons.size > 2 && wrong > 0, 'a was both right and wrong');
  assert.ok(shared > 0 && reasons.has('HostConflict') && reasons.has('HostNotAllowed'), 'and had some hosts beside b');
  await clients.closeAll();
});

function reasonsOfA(table: RoutingTable): string[] {
  return entriesOf(table, 'service')
    .filter(({ namespace }) => namespace === 'a')
    .map(({ accepted }) => accepted.reason);
}

function sharesOfA(table: RoutingTable): number {
  const own = new Set(entriesOf(table, 'service').flatMap(({ namespace, uid }) => (namespace === 'a' ? uid : [])));
  return entriesOf(table, 'listener').filter(({ shared, service }) => shared === true && own.has(service)).length;
}
