import {
  type Counters,
  type Endpoint,
  type EndpointsEntry,
  endpointKey,
  entriesOf,
  type FleetState,
  type Problem,
  type RoutingTable,
  type ServiceEntry,
  type ServiceSettings,
  type ServiceView,
  serviceViewFor,
  subjectFor,
  type TenantLimits,
  type TenantView,
  trafficExhaustedMessage,
  type UnhealthyEndpoint,
  withTrafficExhausted,
} from '@weir/model';

/** Why a Service is as it is: what `weir explain` prints. */
export interface Explanation extends ServiceView {
  /** The last accepted ones; null: never accepted, so not served. */
  readonly settings: ServiceSettings | null;
  readonly nodes: readonly string[];
  readonly endpointList: readonly PortEndpoints[];
  /** What the proxies find not to work, as far as they tell. */
  readonly unhealthyEndpoints: readonly NodeUnhealthyEndpoint[];
  readonly limits: TenantLimits;
  readonly used: ExplainedUsage;
  readonly policy: string | null;
  readonly problems: readonly Problem[];
  /** Null: the ledger does not answer. */
  readonly month: Counters | null;
}

interface ExplainedUsage extends Omit<TenantView['used'], 'trafficThisMonth'> {
  /** Null: the ledger does not answer. */
  readonly trafficThisMonth: number | null;
}

export type NodeUnhealthyEndpoint = UnhealthyEndpoint & { readonly node: string };

interface PortEndpoints {
  readonly port: number;
  readonly protocol: string;
  readonly ready: readonly Endpoint[];
  /** In use while they terminate, since none is ready. */
  readonly terminating: readonly Endpoint[];
  readonly unready: number;
}

export interface ExplanationContext {
  readonly fleet: FleetState;
  /** Of its tenant. */
  readonly tenant: TenantView | undefined;
  /** Null: the ledger does not answer, and what the tenant has used is not known either. */
  readonly month: Counters | null;
}

export function findServiceEntry(table: RoutingTable, namespace: string, name: string): ServiceEntry | undefined {
  return entriesOf(table, 'service').find((entry) => entry.namespace === namespace && entry.name === name);
}

export function explanationFor(entry: ServiceEntry, { fleet, tenant, month }: ExplanationContext): Explanation {
  const subject = subjectFor('Service', entry);
  return {
    ...withTrafficExhausted(serviceViewFor(entry, fleet), month === null ? undefined : exhaustedMessageFor(tenant)),
    settings: entry.settings,
    nodes: entry.nodes,
    endpointList: endpointListFor(entriesOf(fleet.table, 'endpoints').filter((chunk) => chunk.service === entry.uid)),
    unhealthyEndpoints: unhealthyEndpointsFor(entry, fleet),
    limits: tenant?.limits ?? {},
    used: {
      services: tenant?.used.services ?? 0,
      ports: tenant?.used.ports ?? 0,
      trafficThisMonth: month === null ? null : (tenant?.used.trafficThisMonth ?? 0),
    },
    policy: tenant?.policy ?? null,
    problems: entriesOf(fleet.table, 'problem')
      .map((each) => each.problem)
      .filter((problem) => problem.subject === subject),
    month,
  };
}

function exhaustedMessageFor(tenant: TenantView | undefined): string | undefined {
  const limit = tenant?.limits.trafficPerMonth;
  const isExhausted = tenant !== undefined && limit !== undefined && tenant.used.trafficThisMonth >= limit;
  return isExhausted ? trafficExhaustedMessage(tenant) : undefined;
}

/** A proxy that drains takes no clients any more. */
function unhealthyEndpointsFor({ uid }: ServiceEntry, { heartbeats }: FleetState): NodeUnhealthyEndpoint[] {
  return heartbeats
    .filter(({ draining }) => !draining)
    .flatMap(({ node, unhealthy }) =>
      (unhealthy?.endpoints ?? []).filter(({ service }) => service === uid).map((each) => ({ ...each, node })),
    );
}

function endpointListFor(chunks: readonly EndpointsEntry[]): PortEndpoints[] {
  const ports = [...Map.groupBy(chunks, (chunk) => `${chunk.protocol}/${chunk.port}`).values()];
  return ports
    .flatMap((same) => {
      const first = same[0];
      if (first === undefined) return [];
      // An address may stand in two slices while it moves between them.
      const used = [
        ...new Map(same.flatMap((chunk) => chunk.endpoints.map((each) => [endpointKey(each), each]))).values(),
      ];
      const [ready, terminating] = same.some(({ leaving }) => leaving) ? [[], used] : [used, []];
      const unready = same.reduce((sum, chunk) => sum + chunk.unready, 0);
      return [{ port: first.port, protocol: first.protocol, ready, terminating, unready }];
    })
    .sort((a, b) => a.port - b.port || (a.protocol < b.protocol ? -1 : 1));
}
