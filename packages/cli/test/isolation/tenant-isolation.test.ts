// Tests that tenant b is not affected while tenant a applies generated valid and invalid manifests. Tenant b serves TCP, TLS and UDP
// clients through real proxies.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { entriesOf, type RoutingTable } from '@weir/model';
import fc from 'fast-check';
import { hostileManifests } from './hostile-manifests.ts';
import { startIsolationFleet } from './isolation-fleet.ts';

const RUNS = 80;
/** Time after which a run that hangs is ended. Even a slow machine needs much less time. */
const timeout = 240_000;

test('keeps connections, traffic and status of a tenant unchanged while another tenant applies any manifests', {
  timeout,
}, async (t) => {
  await using fleet = await startIsolationFleet();
  await using clients = await fleet.connect();
  const before = await fleet.stateOfB();
  assert.deepEqual(
    before.views.map(({ state }) => state),
    ['Programmed', 'Programmed', 'Programmed'],
  );
  const reasons = new Map<string, number>();
  let invalid = 0;
  let shared = 0;
  await fc.assert(
    fc.asyncProperty(hostileManifests(fleet.targets), async (files) => {
      const [table] = await Promise.all([fleet.apply(files), clients.echoAll()]);
      await Promise.all([clients.echoAll(), clients.connectNewClients()]);
      assert.deepEqual(await fleet.stateOfB(), before);
      for (const reason of reasonsOfA(table)) reasons.set(reason, (reasons.get(reason) ?? 0) + 1);
      shared += sharesOfA(table);
      invalid += entriesOf(table, 'problem').filter(({ problem }) => problem.code.startsWith('Invalid')).length;
    }),
    { numRuns: RUNS, endOnFailure: true },
  );
  t.diagnostic(`${[...reasons].map(([reason, count]) => `${count} ${reason}`).join(', ')}; ${invalid} invalid objects`);
  t.diagnostic(`${shared} listeners of tenant a on the shared port`);
  assert.ok(
    (reasons.get('Accepted') ?? 0) > 0 && reasons.size > 2 && invalid > 0,
    'the generator made valid and invalid Services of tenant a',
  );
  assert.ok(
    shared > 0 && reasons.has('HostConflict') && reasons.has('HostNotAllowed'),
    'tenant a got hosts on the shared port, and was refused other hosts',
  );
  await clients.closeAll();
});

function reasonsOfA(table: RoutingTable): string[] {
  return entriesOf(table, 'service')
    .filter(({ namespace }) => namespace === 'a')
    .map(({ accepted }) => accepted.reason);
}

function sharesOfA(table: RoutingTable): number {
  const uidsOfA = new Set(entriesOf(table, 'service').flatMap(({ namespace, uid }) => (namespace === 'a' ? uid : [])));
  return entriesOf(table, 'listener').filter(({ shared, service }) => shared === true && uidsOfA.has(service)).length;
}
