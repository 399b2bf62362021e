// What balancers are tested with: endpoints, clients, and chance with a seed, so that a spread that fails fails again.
import {
  type BalancerOptions,
  type BalancerRoute,
  buildPool,
  type Client,
  createEndpointStats,
  createMatcher,
  DEFAULT_SERVICE_SETTINGS,
  EMPTY_POOL,
  type EndpointPool,
  type EndpointStats,
  endpointKey,
  fillMaglevSlots,
  listenerId,
  MAGLEV_SLOTS,
  type MaglevTable,
  type Protocol,
  type Route,
  type ServiceSettings,
  serviceId,
  tableOf,
} from '@weir/model';

/** mulberry32. */
export function randomFrom(seed: number): () => number {
  let state = seed;
  return () => {
    state = (state + 0x6d2b79f5) | 0;
    let t = Math.imul(state ^ (state >>> 15), 1 | state);
    t = (t + Math.imul(t ^ (t >>> 7), 61 | t)) ^ t;
    return ((t ^ (t >>> 14)) >>> 0) / 4_294_967_296;
  };
}

export function balancerOptions(seed: number, more: Partial<BalancerOptions> = {}): BalancerOptions {
  return { random: randomFrom(seed), now: () => 0, affinityTable: undefined, ...more };
}

/** A listener of `shop/web`, port 80, with these settings. */
export function routeOf(
  settings: Partial<ServiceSettings> = {},
  { protocol = 'TCP', uid = 'uid' }: { readonly protocol?: Protocol; readonly uid?: string } = {},
): BalancerRoute {
  const listener = { node: 'n1', address: '192.0.2.1', port: 80, protocol, service: uid } as const;
  const table = tableOf([
    { kind: 'listener', id: listenerId(listener), ...listener },
    {
      kind: 'service',
      id: serviceId(uid),
      uid,
      namespace: 'shop',
      name: 'web',
      tenant: 'shop',
      accepted: { reason: 'Accepted', message: '' },
      degraded: [],
      settings: { ...DEFAULT_SERVICE_SETTINGS, ...settings },
      ports: [],
      pool: 'default',
      nodes: ['n1'],
    },
  ]);
  const [route] = createMatcher(table, 'n1').routes.values();
  return route as Route;
}

export function endpointStatsList(count: number, zoneOf?: (index: number) => string): EndpointStats[] {
  return Array.from({ length: count }, (_, i) =>
    createEndpointStats({ address: `10.0.${i >> 8}.${i & 255}`, port: 80, ...(zoneOf && { zone: zoneOf(i) }) }),
  );
}

export function maglevOf(endpoints: readonly EndpointStats[]): MaglevTable {
  const keys = endpoints.map(({ endpoint }) => endpointKey(endpoint));
  const slots = maglevSlotsByKeys.get(keys.join()) ?? new Uint16Array(MAGLEV_SLOTS);
  if (!maglevSlotsByKeys.has(keys.join())) fillMaglevSlots(slots, keys);
  maglevSlotsByKeys.set(keys.join(), slots);
  return { slots, endpoints };
}

/** The same endpoints come again and again, and a table of them takes milliseconds. */
const maglevSlotsByKeys = new Map<string, Uint16Array>();

/** As a worker has it: with a maglev table where there is more than one endpoint. */
export function poolOf(loads: readonly EndpointStats[], zone: string | null = null): EndpointPool {
  return buildPool(EMPTY_POOL, loads, { zone, maglev: loads.length > 1 ? maglevOf(loads) : undefined });
}

/** The `index`th of many clients, each with another address. */
export function clientOf(index: number, port = 40_000): Client {
  return { address: `198.${51 + (index >> 16)}.${(index >> 8) & 255}.${index & 255}`, port };
}
