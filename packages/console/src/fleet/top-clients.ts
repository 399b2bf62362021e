// Reads the clients of a tenant with the most bytes and connections from the proxies that serve the tenant.
import {
  entriesOf,
  type Heartbeat,
  mergeTenantClients,
  type RoutingTable,
  type TenantClients,
  type TopClients,
} from '@weir/model';
import { errorMessage } from '@weir/runtime';
import { adminAddressOf } from '../access-log/access-log-follower.ts';
import { type ProxyAdminAccess, readProxyJson } from '../access-log/proxy-stream.ts';

/** A proxy that does not answer within this time is left out. */
const TIMEOUT_MS = 3_000;

export interface FleetClients {
  /** Undefined if no proxy has answered. */
  readonly clients: TenantClients | undefined;
  /** Whether a proxy has answered that it does not count clients. */
  readonly isOff: boolean;
  /** The proxies whose clients are missing, and why. */
  readonly missing: readonly { readonly node: string; readonly problem: string }[];
}

export async function readTopClients(
  proxies: readonly Heartbeat[],
  tenant: string,
  access: ProxyAdminAccess,
): Promise<FleetClients> {
  const answers = await Promise.all(proxies.map((proxy) => readProxy(proxy, tenant, access)));
  const [first, ...others] = answers.flatMap(({ clients }) => clients ?? []);
  return {
    clients: first && mergeTenantClients([first, ...others]),
    isOff: answers.some(({ isOff }) => isOff === true),
    missing: answers.flatMap(({ node, problem }) => (problem === undefined ? [] : { node, problem })),
  };
}

/** Returns the proxies of the nodes that serve a Service of the tenant. */
export function proxiesOfTenant(table: RoutingTable, heartbeats: readonly Heartbeat[], tenant: string): Heartbeat[] {
  const services = entriesOf(table, 'service').filter((service) => service.tenant === tenant);
  const nodes = new Set(services.flatMap((service) => service.nodes));
  return heartbeats.filter(({ node }) => nodes.has(node));
}

interface ProxyAnswer {
  readonly node: string;
  readonly clients?: TenantClients;
  readonly isOff?: boolean;
  readonly problem?: string;
}

async function readProxy(heartbeat: Heartbeat, tenant: string, access: ProxyAdminAccess): Promise<ProxyAnswer> {
  const { node } = heartbeat;
  const address = adminAddressOf(heartbeat);
  if (address === undefined) return { node, problem: 'its admin server does not listen' };
  try {
    const path = `/top-clients?tenant=${encodeURIComponent(tenant)}`;
    const signal = AbortSignal.timeout(TIMEOUT_MS);
    const { status, body } = await readProxyJson({ address, path, access, signal });
    if (status === 404) return { node, isOff: true, problem: 'it does not count clients' };
    const answer = status === 200 ? parseAnswer(body) : undefined;
    if (answer === undefined) return { node, problem: `its admin server answered ${status}` };
    if (answer.missingWorkers === 0) return { node, clients: answer };
    return { node, clients: answer, problem: `${answer.missingWorkers} of its workers did not answer` };
  } catch (error) {
    return { node, problem: errorMessage(error) };
  }
}

type Answer = TenantClients & { readonly missingWorkers: number };

/** Returns undefined if the answer is not that of this version. */
function parseAnswer(body: string): Answer | undefined {
  const parsed = JSON.parse(body) as Partial<Answer>;
  const { since, bytes, connections, missingWorkers } = parsed;
  return isNumber(since) && isNumber(missingWorkers) && isTopClients(bytes) && isTopClients(connections)
    ? { since, bytes, connections, missingWorkers }
    : undefined;
}

function isTopClients(value: Partial<TopClients> | undefined): value is TopClients {
  return (
    isNumber(value?.total) &&
    isNumber(value.unlistedAtMost) &&
    Array.isArray(value.clients) &&
    value.clients.every(
      ({ client, estimate, error }) => typeof client === 'string' && isNumber(estimate) && isNumber(error),
    )
  );
}

function isNumber(value: unknown): value is number {
  return typeof value === 'number';
}
