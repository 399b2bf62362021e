// Tests that the ledger counts each refused client once, by its reason, although reports are lost, repeated and reordered.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { eventually } from '@weir/testkit';
import { REFUSAL_REASONS } from '../../src/metering/counters.ts';
import { FLEET_SECRET } from '../fixtures/certificates.ts';
import { faultyStore, type ReportFate } from '../fixtures/faulty-store.ts';
import { startFleet } from '../fixtures/fleet.ts';
import { LOAD_BALANCER, openServices, refusalCases, startRefusingEndpoints } from '../fixtures/refused-clients.ts';

/** Each report contains all totals, so every count meets every fate. */
const FATES: readonly ReportFate[] = ['lost', 'unanswered', 'repeated', 'overtaken', 'arrives'];
const CLIENTS = 3;

/** Reasons that no client can cause at will, and reasons that no Service counts. */
const REASONS_WITHOUT_CASE: Readonly<Record<string, string>> = {
  'no-listener': 'needs a connection at the moment at which a listener closes',
  'client-gone': 'needs a reset before the proxy accepts: see accept/proxy-header.test.ts',
  'forged-source': 'needs a raw socket: see accept/forged-udp-source.test.ts',
  overloaded: 'needs endpoints with many open requests: see http/endpoint-connections.test.ts',
  'no-descriptors': 'needs a process with few descriptors: see wire/descriptor-exhaustion.test.ts',
  'retry-limit': 'needs many failed requests before: see http/retries.test.ts',
  'no-backend': 'needs an HTTP route: see http/wire/http-routes.test.ts',
  'bad-request': 'counts for no Service, because no Service was found',
  'no-route': 'counts for no Service, because no Service was found',
  'misdirected-request': 'counts for no Service, because no Service was found',
};

test('counts each refused client once in the ledger, for every reason', async () => {
  await using stack = new AsyncDisposableStack();
  const endpoints = await startRefusingEndpoints(stack);
  const cases = refusalCases(endpoints);
  const tested = new Set(cases.map(({ reason }) => reason));
  const missing = new Set(REFUSAL_REASONS.filter((reason) => !tested.has(reason)));
  assert.deepEqual([...missing].sort(), Object.keys(REASONS_WITHOUT_CASE).sort());

  const fleet = stack.use(await startFleet());
  fleet.limit('connection-limit-of-tenant', { connections: 0 });
  await fleet.serve(...openServices(endpoints), ...cases.map(({ service }) => service));
  for (const tenant of ['cut-off', 'suspended']) await fleet.cutOff({ kind: 'tenant', tenant });
  let reports = 0;
  const store = faultyStore(fleet.store, () => FATES[reports++ % FATES.length] ?? 'arrives');
  const trustProxyProtocol = [`${LOAD_BALANCER}/32`];
  const proxy = await fleet.proxy({ store, workers: 2, fleetSecret: FLEET_SECRET, trustProxyProtocol });
  await proxy.ready;

  const connections = cases.flatMap((each) => Array.from({ length: CLIENTS }, () => each.connect(fleet.addressOf())));
  await Promise.all(connections);
  const expected = Object.fromEntries(cases.map(({ reason, service }) => [service.name, { [reason]: CLIENTS }]));
  const counted = async (): Promise<unknown> =>
    Object.fromEntries(
      Object.entries(await fleet.usage()).flatMap(([name, { refused }]) =>
        refused === undefined ? [] : [[name, refused]],
      ),
    );
  await eventually(async () => assert.deepEqual(await counted(), expected));
  await proxy.close();
  assert.deepEqual(await counted(), expected);
  assert.ok(reports >= FATES.length, `${reports} reports`);
});
