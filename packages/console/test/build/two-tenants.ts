// The shop, and beside it a rival: whatever names, addresses and figures the rival has can be told from all others.
import { type Entry, endpointsId, listenerId, minuteOf, serviceId, tenantId } from '@weir/model';
import type { Clock } from '@weir/runtime';
import { suspensionNameFor } from '../../src/suspensions/suspension-name.ts';
import { SERVICE_SETTINGS, type SeededStore, SHOP_ENTRIES, seededStore, WEB_SERVICE } from './seeded-store.ts';

/** What only the rival has; the shop's words are `shop`, `web`, `extra`, `192.0.2.1`. */
export const RIVAL_DATA: RegExp = /rival|example\.net|7777777|10\.7\.7\.7/;
export const SHOP_DATA: RegExp = /shop|web|extra|10\.1\.0\.1/;

const RIVAL_SERVICE = {
  ...WEB_SERVICE,
  id: serviceId('uid-rival'),
  uid: 'uid-rival',
  namespace: 'rival',
  name: 'rival-api',
};
const RIVAL_ADDRESS = { node: 'a', address: '10.0.0.1', protocol: 'TCP', port: 7_770 } as const;
const RIVAL_PORT = { service: RIVAL_SERVICE.uid, port: 7_770, protocol: 'TCP' } as const;

const RIVAL_ENTRIES: readonly Entry[] = [
  {
    kind: 'tenant',
    id: tenantId('rival'),
    name: 'rival',
    policy: 'rival-policy',
    namespaces: ['rival', 'rival-two'],
    limits: { services: 7_777_777, trafficPerMonth: 77_777_770_000 },
    used: { services: 1, ports: 1 },
  },
  {
    ...RIVAL_SERVICE,
    tenant: 'rival',
    ports: [{ name: null, port: 7_770, protocol: 'TCP', error: null }],
    settings: { ...SERVICE_SETTINGS, hosts: ['rival.example.net'] },
  },
  { kind: 'listener', id: listenerId(RIVAL_ADDRESS), ...RIVAL_ADDRESS, service: RIVAL_SERVICE.uid },
  {
    kind: 'endpoints',
    id: endpointsId(RIVAL_PORT, 'rival-1', 0),
    ...RIVAL_PORT,
    endpoints: [{ address: '10.7.7.7', port: 7_777 }],
    unready: 0,
  },
  ...['Service rival/rival-api', 'Secret rival/rival-key', 'TenantPolicy rival-policy', 'Node rival-node'].map(
    (subject, index): Entry => ({
      kind: 'problem',
      id: `problem/rival-${index}`,
      problem: { code: 'InvalidObject', subject, severity: 'warning', heals: true, message: 'of the rival' },
    }),
  ),
];

export interface TwoTenantStore extends SeededStore {
  /** Cumulative; the rival received 7,777,777 times as much. */
  flushUsageOfBoth(bytes: number): Promise<void>;
}

export async function twoTenantStore(clock: Clock): Promise<TwoTenantStore> {
  const seeded = await seededStore(clock, [...SHOP_ENTRIES, ...RIVAL_ENTRIES]);
  const targets = [
    { kind: 'service', namespace: 'shop', service: 'extra' } as const,
    { kind: 'tenant', tenant: 'rival' } as const,
  ];
  for (const target of targets) {
    const name = suspensionNameFor(target);
    await seeded.store.suspensions.put({
      uid: `uid-of-${name}`,
      name,
      target,
      message: `for ${name} to read`,
      until: null,
      reason: 'SuspendedByOperator',
      origin: { kind: 'store' },
      createdAt: null,
    });
  }
  return {
    ...seeded,
    async flushUsageOfBoth(bytes) {
      await seeded.flushUsage({ receivedBytes: bytes, sentBytes: bytes, connections: 1 });
      const counters = { receivedBytes: bytes, sentBytes: 7_777_777 * bytes, connections: 1, requests: 0 };
      const points = [{ minute: minuteOf(clock.now()), counters }];
      const slot = { service: RIVAL_SERVICE.uid, tenant: 'rival', namespace: 'rival', name: 'rival-api', points };
      await seeded.store.usage.flush({ node: 'b', life: 1, slots: [slot] });
    },
  };
}
