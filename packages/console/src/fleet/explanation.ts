import {
  type Counters,
  compareText,
  type Endpoint,
  type EndpointsEntry,
  endpointKey,
  entriesOf,
  type FleetState,
  type Problem,
  type RefusalCounts,
  type RoutingTable,
  type ServiceEntry,
  type ServiceSettings,
  type ServiceView,
  serviceViewFor,
  subjectFor,
  type TenantLimits,
  type TenantView,
  trafficLevelOf,
  trafficMessage,
  type UnhealthyEndpoint,
  type UsageNotices,
  withNotices,
  withThrottleNotices,
} from '@weir/model';

/** The data that `weir explain` prints for one Service. */
export interface Explanation extends ServiceView {
  /** The settings that were accepted last. Null if no settings were ever accepted. */
  readonly settings: ServiceSettings | null;
  readonly nodes: readonly string[];
  readonly endpointList: readonly PortEndpoints[];
  /** Endpoints that proxies report as failing. The list may be incomplete, because heartbeats have a maximum size. */
  readonly unhealthyEndpoints: readonly NodeUnhealthyEndpoint[];
  readonly limits: TenantLimits;
  readonly used: ExplainedUsage;
  readonly policy: string | null;
  readonly problems: readonly Problem[];
  /** Usage of this month. Null if the store is unreachable. */
  readonly month: Counters | null;
  /** Refusals by reason since midnight UTC. Null if the store is unreachable. `month.refused` has the refusals of this month. */
  readonly refusedToday: RefusalCounts | null;
}

interface ExplainedUsage extends Omit<TenantView['used'], 'trafficThisMonth'> {
  /** The tenant's bytes of this month. Null if the store is unreachable. */
  readonly trafficThisMonth: number | null;
}

export type NodeUnhealthyEndpoint = UnhealthyEndpoint & { readonly node: string };

interface PortEndpoints {
  readonly port: number;
  readonly protocol: string;
  readonly ready: readonly Endpoint[];
  /** Terminating endpoints, which are used because no endpoint is ready. */
  readonly terminating: readonly Endpoint[];
  readonly unready: number;
}

export interface ExplanationContext {
  readonly fleet: FleetState;
  readonly notices: UsageNotices;
  /** The tenant of the Service, if the user may see it. */
  readonly tenant: TenantView | undefined;
  /** Usage of the Service this month. Null if the store is unreachable; the tenant's traffic is then unknown, too. */
  readonly month: Counters | null;
  /** Usage of the Service since midnight UTC. Null if the store is unreachable. */
  readonly today: Counters | null;
}

export function findServiceEntry(table: RoutingTable, namespace: string, name: string): ServiceEntry | undefined {
  return entriesOf(table, 'service').find((entry) => entry.namespace === namespace && entry.name === name);
}

export function explanationFor(entry: ServiceEntry, context: ExplanationContext): Explanation {
  const { fleet, tenant, month, today } = context;
  const subject = subjectFor('Service', entry);
  return {
    ...withNotices(serviceViewFor(entry, fleet), noticesFor(context)),
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
    refusedToday: today === null ? null : (today.refused ?? {}),
  };
}

/** Computes the notice about the tenant's traffic from the usage that the response contains, so that both agree. */
function noticesFor({ tenant, month, fleet, notices: { byService } }: ExplanationContext): UsageNotices {
  const level =
    month === null || tenant === undefined ? 'below' : trafficLevelOf(tenant.limits, tenant.used.trafficThisMonth);
  const byTenant: UsageNotices['byTenant'] =
    tenant === undefined || level === 'below'
      ? new Map()
      : new Map([[tenant.name, [{ reason: 'OverLimit', message: trafficMessage(tenant, level, fleet.now) }]]]);
  const notices = { byTenant, byService };
  return tenant === undefined ? notices : withThrottleNotices(notices, fleet.table);
}

/** Returns the unhealthy endpoints of the Service that proxies report. Skips draining proxies, because they accept no connections. */
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
    .flatMap((chunks) => {
      const first = chunks[0];
      if (first === undefined) return [];
      // Removes duplicates: Kubernetes lists an address in two EndpointSlices while it moves the address from one to the other.
      const endpoints = [
        ...new Map(
          chunks.flatMap((chunk) => chunk.endpoints.map((endpoint) => [endpointKey(endpoint), endpoint])),
        ).values(),
      ];
      const [ready, terminating] = chunks.some(({ leaving }) => leaving) ? [[], endpoints] : [endpoints, []];
      const unready = chunks.reduce((sum, chunk) => sum + chunk.unready, 0);
      return [{ port: first.port, protocol: first.protocol, ready, terminating, unready }];
    })
    .sort((a, b) => a.port - b.port || compareText(a.protocol, b.protocol));
}
