import assert from 'node:assert/strict';
import { test } from 'node:test';
import { AdmissionController } from '../../src/limits/admission.ts';
import { ACTIVE, outcomeColumn, RECEIVED } from '../../src/metering/counters.ts';
import type { UdpFlow } from '../../src/relay/udp-flow.ts';
import { TenantFlows } from '../../src/relay/udp-flow-table.ts';
import { advanceSeconds, createTimeoutWheel, setUpUdpFlows } from './udp-flow-setup.ts';

const BYTES = new Uint8Array(1);

test('a client address at its limit replaces its least recently active flow', () => {
  const { listener, openFlows, wheel, counters } = setUpUdpFlows({ maxFlowsPerTenant: 6 });
  for (const port of [1, 2, 3]) listener.onMessage(BYTES, 'client', port);
  advanceSeconds(wheel, 1);
  for (const port of [1, 3]) listener.onMessage(BYTES, 'client', port);
  listener.onMessage(BYTES, 'other', 1);
  listener.onMessage(BYTES, 'client', 4);
  assert.deepEqual(openFlows(), ['client|1', 'client|3', 'client|4', 'other|1']);
  assert.deepEqual([counters[ACTIVE], counters[outcomeColumn('evicted')]], [4, 1]);
});

test('a tenant at its limit keeps its active flows while an attacker forges new client addresses', () => {
  const { listener, openFlows, wheel, counters } = setUpUdpFlows({ maxFlowsPerTenant: 5 });
  listener.onMessage(BYTES, 'active', 1);
  for (let forged = 0; forged < 1_000; forged += 1) {
    listener.onMessage(BYTES, `forged ${forged}`, 1);
    advanceSeconds(wheel, 1);
    listener.onMessage(BYTES, 'active', 1);
  }
  assert.equal(openFlows().length, 5);
  assert.ok(openFlows().includes('active|1'));
  assert.deepEqual([counters[ACTIVE], counters[outcomeColumn('evicted')]], [5, 996]);
});

test('a tenant without budget for new flows keeps its open flows', () => {
  let budget = 2;
  const { listener, openFlows, counters } = setUpUdpFlows({
    takeNewFlow() {
      budget -= 1;
      return budget >= 0;
    },
  });
  for (const port of [1, 2, 3, 4, 1, 2]) listener.onMessage(BYTES, 'client', port);
  assert.deepEqual(
    [openFlows(), counters[outcomeColumn('rate-limit')], counters[RECEIVED]],
    [['client|1', 'client|2'], 2, 4],
  );
});

test('counts a refused flow, and admits it when another flow has ended', () => {
  const controller = new AdmissionController();
  let free = 1;
  const { listener, openFlows, wheel, counters } = setUpUdpFlows({
    maxFlowsPerTenant: 100,
    admit(uid) {
      if (free === 0) return 'connection-limit';
      free -= 1;
      const admission = controller.admit(uid);
      assert.ok(typeof admission !== 'string');
      const release = (): void => {
        free += 1;
      };
      return Object.assign(admission, { release });
    },
  });
  for (const port of [1, 2]) listener.onMessage(BYTES, 'client', port);
  assert.deepEqual(
    [openFlows(), counters[outcomeColumn('connection-limit')], counters[RECEIVED]],
    [['client|1'], 1, 1],
  );
  advanceSeconds(wheel, 100);
  assert.deepEqual([openFlows(), free], [[], 1]);
  listener.onMessage(BYTES, 'client', 2);
  assert.deepEqual(openFlows(), ['client|2']);
});

test('a flow that fails to open releases its admission and does not stay active', () => {
  const controller = new AdmissionController();
  let admitted = 0;
  let defects = 2;
  const tenants = new TenantFlows<UdpFlow>(100);
  const add = tenants.add.bind(tenants);
  const throwDefect = (): void => {
    if (defects-- > 0) throw new Error('a defect');
  };
  const { listener, openFlows, counters } = setUpUdpFlows({
    tenants: Object.assign(tenants, {
      add(flow: UdpFlow) {
        throwDefect();
        add(flow);
      },
    }),
    admit(uid) {
      const admission = controller.admit(uid);
      assert.ok(typeof admission !== 'string');
      admitted += 1;
      const release = (): void => {
        admitted -= 1;
      };
      const failsAdmission = admitted === 1 && defects === 1;
      return Object.assign(admission, {
        release,
        ...(failsAdmission ? { admitClient: () => throwDefect() === undefined } : {}),
      });
    },
    onInternalError: () => undefined,
  });
  listener.onMessage(BYTES, 'client', 1);
  assert.deepEqual([openFlows(), counters[ACTIVE], admitted], [[], 0, 0]);
  assert.throws(() => listener.onMessage(BYTES, 'client', 1), /a defect/, 'the transport catches it');
  assert.deepEqual([openFlows(), counters[ACTIVE], admitted], [[], 0, 0]);
  listener.onMessage(BYTES, 'client', 1);
  assert.deepEqual([openFlows(), counters[ACTIVE], admitted], [['client|1'], 1, 1]);
});

test('a tenant at its limit does not end flows of another tenant', () => {
  const wheel = createTimeoutWheel();
  const tenants = new TenantFlows<UdpFlow>(2);
  const shop = setUpUdpFlows({ maxFlowsPerTenant: 2, tenant: 'shop', wheel, tenants });
  const games = setUpUdpFlows({ maxFlowsPerTenant: 2, tenant: 'games', wheel, tenants });
  games.listener.onMessage(BYTES, 'player', 1);
  for (let buyer = 1; buyer < 50; buyer += 1) shop.listener.onMessage(BYTES, `buyer ${buyer}`, 1);
  assert.deepEqual([shop.openFlows().length, games.openFlows()], [2, ['player|1']]);
});
