// The caps that always hold.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { AdmissionController } from '../../src/limits/admission.ts';
import { ACTIVE, outcomeColumn, RECEIVED } from '../../src/metering/counters.ts';
import type { UdpFlow } from '../../src/relay/udp-flow.ts';
import { TenantFlows } from '../../src/relay/udp-flow-table.ts';
import { advanceSeconds, createTimeoutWheel, setUpUdpFlows } from './udp-flow-setup.ts';

const BYTES = new Uint8Array(1);

test('a client that has all the flows it may have gets a new one for its longest silent one', () => {
  const { listener, open, wheel, row } = setUpUdpFlows({ perTenant: 6 });
  for (const port of [1, 2, 3]) listener.onMessage(BYTES, 'client', port);
  advanceSeconds(wheel, 1);
  for (const port of [1, 3]) listener.onMessage(BYTES, 'client', port);
  listener.onMessage(BYTES, 'other', 1);
  listener.onMessage(BYTES, 'client', 4);
  assert.deepEqual(open(), ['client|1', 'client|3', 'client|4', 'other|1']);
  assert.deepEqual([row[ACTIVE], row[outcomeColumn('evicted')]], [4, 1]);
});

test('a tenant that has all the flows it may have keeps those that speak, whoever forges new ones', () => {
  const { listener, open, wheel, row } = setUpUdpFlows({ perTenant: 5 });
  listener.onMessage(BYTES, 'speaker', 1);
  for (let forged = 0; forged < 1_000; forged += 1) {
    listener.onMessage(BYTES, `forged ${forged}`, 1);
    advanceSeconds(wheel, 1);
    listener.onMessage(BYTES, 'speaker', 1);
  }
  assert.equal(open().length, 5);
  assert.ok(open().includes('speaker|1'));
  assert.deepEqual([row[ACTIVE], row[outcomeColumn('evicted')]], [5, 996]);
});

test('what limits refuse is counted, opens no flow, and gets its turn when a flow has ended', () => {
  const limits = new AdmissionController();
  let free = 1;
  const { listener, open, wheel, row } = setUpUdpFlows({
    perTenant: 100,
    admit(uid) {
      if (free === 0) return 'connection-limit';
      free -= 1;
      const grant = limits.admit(uid);
      assert.ok(typeof grant !== 'string');
      const release = (): void => {
        free += 1;
      };
      return Object.assign(grant, { release });
    },
  });
  for (const port of [1, 2]) listener.onMessage(BYTES, 'client', port);
  assert.deepEqual([open(), row[outcomeColumn('connection-limit')], row[RECEIVED]], [['client|1'], 1, 1]);
  advanceSeconds(wheel, 100);
  assert.deepEqual([open(), free], [[], 1]);
  listener.onMessage(BYTES, 'client', 2);
  assert.deepEqual(open(), ['client|2']);
});

test('a flow that cannot begin gives its place and its slot back', () => {
  const limits = new AdmissionController();
  let taken = 0;
  let bugs = 2;
  const tenants = new TenantFlows<UdpFlow>(100);
  const add = tenants.add.bind(tenants);
  const strike = (): void => {
    if (bugs-- > 0) throw new Error('a bug');
  };
  const { listener, open, row } = setUpUdpFlows({
    tenants: Object.assign(tenants, {
      add(flow: UdpFlow) {
        strike();
        add(flow);
      },
    }),
    admit(uid) {
      const grant = limits.admit(uid);
      assert.ok(typeof grant !== 'string');
      taken += 1;
      const release = (): void => {
        taken -= 1;
      };
      const isUnlucky = taken === 1 && bugs === 1;
      return Object.assign(grant, { release, ...(isUnlucky ? { capClient: () => strike() === undefined } : {}) });
    },
    onInternalError: () => undefined,
  });
  listener.onMessage(BYTES, 'client', 1);
  assert.deepEqual([open(), row[ACTIVE], taken], [[], 0, 0]);
  assert.throws(() => listener.onMessage(BYTES, 'client', 1), /a bug/, 'for the transport to catch');
  assert.deepEqual([open(), row[ACTIVE], taken], [[], 0, 0]);
  listener.onMessage(BYTES, 'client', 1);
  assert.deepEqual([open(), row[ACTIVE], taken], [['client|1'], 1, 1]);
});

test('one tenant at its cap takes nothing from another', () => {
  const wheel = createTimeoutWheel();
  const tenants = new TenantFlows<UdpFlow>(2);
  const shop = setUpUdpFlows({ perTenant: 2, tenant: 'shop', wheel, tenants });
  const games = setUpUdpFlows({ perTenant: 2, tenant: 'games', wheel, tenants });
  games.listener.onMessage(BYTES, 'player', 1);
  for (let buyer = 1; buyer < 50; buyer += 1) shop.listener.onMessage(BYTES, `buyer ${buyer}`, 1);
  assert.deepEqual([shop.open().length, games.open()], [2, ['player|1']]);
});
