// A small fleet by hand: a shop that is served at one node, and a second Service of it that is over the quota.
import {
  type Counters,
  DEFAULT_SERVICE_SETTINGS,
  type Entry,
  endpointsId,
  type Heartbeat,
  type ListenerEntry,
  listenerId,
  minuteOf,
  nodeId,
  type ServiceEntry,
  type ServiceSettings,
  serviceId,
  type TablePosition,
  tenantId,
  type UnhealthyEndpoint,
} from '@weir/model';
import type { Clock } from '@weir/runtime';
import { createMemoryStore, type MemoryStore } from '@weir/store';

export const SERVICE_SETTINGS: ServiceSettings = DEFAULT_SERVICE_SETTINGS;

const QUOTA_MESSAGE = '1 of 1 load balancers of tenant "shop" are in use (web); delete one or ask for a higher limit';

export const WEB_SERVICE: ServiceEntry = {
  kind: 'service',
  id: serviceId('uid-web'),
  uid: 'uid-web',
  namespace: 'shop',
  name: 'web',
  tenant: 'shop',
  accepted: { reason: 'Accepted', message: 'accepted' },
  degraded: [],
  settings: SERVICE_SETTINGS,
  ports: [{ name: null, port: 80, protocol: 'TCP', error: null }],
  pool: 'default',
  nodes: ['a'],
};

const EXTRA_SERVICE: ServiceEntry = {
  ...WEB_SERVICE,
  id: serviceId('uid-extra'),
  uid: 'uid-extra',
  name: 'extra',
  accepted: { reason: 'QuotaExceeded', message: QUOTA_MESSAGE },
  settings: null,
  pool: null,
  nodes: [],
};

const WEB_ADDRESS = { node: 'a', address: '10.0.0.1', protocol: 'TCP', port: 80 } as const;
const WEB_LISTENER: ListenerEntry = {
  kind: 'listener',
  id: listenerId(WEB_ADDRESS),
  ...WEB_ADDRESS,
  service: WEB_SERVICE.uid,
};

const WEB_PORT = { service: WEB_SERVICE.uid, port: 80, protocol: 'TCP' } as const;

export const SHOP_ENTRIES: readonly Entry[] = [
  {
    kind: 'node',
    id: nodeId('a'),
    name: 'a',
    bindAddresses: ['10.0.0.1'],
    publishedAddresses: ['192.0.2.1'],
    zone: null,
    pool: 'default',
  },
  {
    kind: 'tenant',
    id: tenantId('shop'),
    name: 'shop',
    policy: 'shop',
    namespaces: ['shop'],
    limits: { services: 1, trafficPerMonth: 10_000 },
    used: { services: 1, ports: 1 },
  },
  WEB_SERVICE,
  EXTRA_SERVICE,
  WEB_LISTENER,
  {
    kind: 'endpoints',
    id: endpointsId(WEB_PORT, 'web-1', 0),
    ...WEB_PORT,
    endpoints: [
      { address: '10.1.0.1', port: 8080 },
      { address: '10.1.0.2', port: 8080 },
    ],
    unready: 1,
  },
  {
    kind: 'problem',
    id: 'problem/1',
    problem: {
      code: 'QuotaExceeded',
      subject: 'Service shop/extra',
      severity: 'error',
      heals: true,
      message: QUOTA_MESSAGE,
    },
  },
];

export interface SeededStore {
  readonly store: MemoryStore;
  /** Proxy `a` says that it listens; heartbeats live 3 s. */
  sendHeartbeat(): Promise<void>;
  /** Cumulative use of Service shop/web, as its proxy would report. */
  flushUsage(counters: Partial<Counters>): Promise<void>;
}

export async function seededStore(clock: Clock, entries: readonly Entry[] = SHOP_ENTRIES): Promise<SeededStore> {
  const store = createMemoryStore({ clock });
  const position = await publish(store, entries);
  await store.suspensions.markComplete();
  await store.usage.seed({ months: [], bases: [] });
  const sendHeartbeat = (): Promise<void> => store.heartbeats.record(heartbeatFor(position, clock.now()));
  await sendHeartbeat();
  return {
    store,
    sendHeartbeat,
    async flushUsage(counters) {
      const all = { receivedBytes: 0, sentBytes: 0, connections: 0, requests: 0, ...counters };
      const points = [{ minute: minuteOf(clock.now()), counters: all }];
      const slot = { service: WEB_SERVICE.uid, tenant: 'shop', namespace: 'shop', name: 'web', points };
      await store.usage.flush({ node: 'a', life: 1, slots: [slot] });
    },
  };
}

async function publish(store: MemoryStore, entries: readonly Entry[]): Promise<TablePosition> {
  const leader = await store.table.claimLeader();
  const opened = await store.table.openEpoch({ leader, id: 'epoch' });
  if (opened.kind !== 'published') throw new Error(opened.kind);
  const changes = entries.map((entry) => ({ kind: 'put', entry }) as const);
  const published = await store.table.publish({
    leader,
    predecessor: opened.position,
    id: 'first',
    changes,
    complete: true,
  });
  if (published.kind !== 'published') throw new Error(published.kind);
  return published.position;
}

function heartbeatFor(applied: TablePosition, now: number): Heartbeat {
  return {
    node: 'a',
    life: 1,
    version: '0.0.0',
    startedAt: now,
    draining: false,
    addresses: ['10.0.0.1'],
    applied,
    cutoffSequence: 0,
    listeners: [{ id: WEB_LISTENER.id, service: WEB_SERVICE.uid, bound: true, listening: true, error: null }],
    workers: 1,
    connections: 3,
    unhealthy: { total: 2, endpoints: [unhealthyEndpoint(WEB_SERVICE.uid), unhealthyEndpoint('another')] },
  };
}

function unhealthyEndpoint(service: string): UnhealthyEndpoint {
  const endpoint = { address: '10.1.0.1', port: 8_080 };
  return { service, protocol: 'TCP', port: 80, endpoint, state: 'failing', why: 'status 500', used: false };
}
