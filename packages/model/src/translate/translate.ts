// The one place that decides what is served. Pure: the controller, `weir translate`, the tests and the benchmarks call it.
import type { Problem } from '../problem.ts';
import type { ServiceObject, SliceObject, Snapshot } from '../snapshot.ts';
import { type Entry, type ServiceEntry, serviceId, type TenantEntry, tenantId } from '../table/entry.ts';
import { type RoutingTable, tableOf } from '../table/table.ts';
import { type Decision, decide } from './decision.ts';
import { endpointsFor, type ServiceEndpoints } from './endpoints.ts';
import type { Held } from './held.ts';
import { type Nodes, nodesFor } from './nodes.ts';
import type { Outcome } from './outcome.ts';
import { heldPortsFor, ownedServicesFor } from './owned.ts';
import { holdsPort } from './placement.ts';
import { problemEntries, problemsFor } from './problems.ts';
import { createQuota, type Quota } from './quota.ts';
import { type Tenancy, tenancyFor } from './tenancy.ts';
import { listed } from './text.ts';
import { trustFor } from './trust.ts';

export interface Translation {
  readonly table: RoutingTable;
  /** One for each Service that Weir takes, by namespace and name. */
  readonly statuses: readonly ServiceStatus[];
  /** By subject and code. */
  readonly problems: readonly Problem[];
}

/** What translation alone can say of a Service; whether it is bound, the proxies know. */
export type ServiceStatus = Pick<
  ServiceEntry,
  'uid' | 'namespace' | 'name' | 'tenant' | 'accepted' | 'degraded' | 'ports' | 'nodes'
>;

/**
 * The routing table of a snapshot. `held` is what the last table granted (`heldFor`): who has a port keeps it, and the last
 * accepted settings of a Service serve on while its present ones are wrong. The order of the snapshot does not matter.
 */
export function translate(snapshot: Snapshot, held: Held): Translation {
  const nodes = nodesFor(snapshot);
  const tenancy = tenancyFor(snapshot);
  const quota = createQuota();
  const services = ownedServicesFor(snapshot, held);
  const outcomes = withEndpoints(snapshot, nodes, decideAll({ snapshot, services, nodes, tenancy, quota, held }));
  const problems = problemsFor(snapshot, { outcomes, nodes, tenancy });
  const entries: Entry[] = [
    ...nodes.entries,
    ...tenantEntries(outcomes, tenancy, quota),
    ...outcomes.map(serviceEntry),
    ...outcomes.flatMap(({ listeners, endpoints }) => [...listeners, ...endpoints.entries]),
    ...problemEntries(problems),
  ];
  entries.sort((a, b) => (a.id < b.id ? -1 : 1));
  const statuses = outcomes.map(statusOf).sort(byName);
  return { table: tableOf(entries), statuses, problems };
}

interface Deciding {
  readonly snapshot: Snapshot;
  readonly services: readonly ServiceObject[];
  readonly nodes: Nodes;
  readonly tenancy: Tenancy;
  readonly quota: Quota;
  readonly held: Held;
}

function decideAll({ snapshot, services, nodes, tenancy, quota, held }: Deciding): Decision[] {
  const taken = heldPortsFor(services, nodes.entries, held);
  const byUid = new Map(services.map((service) => [service.uid, service]));
  const tenantOf = (service: ServiceObject): string | undefined => {
    const membership = tenancy.membershipOf(service.namespace);
    return membership.kind === 'tenant' ? membership.tenant.name : undefined;
  };
  const decideOne = (service: ServiceObject): Decision =>
    decide(service, {
      fleet: snapshot.settings,
      nodes: nodes.entries,
      membership: tenancy.membershipOf(service.namespace),
      held: held.services.get(service.uid),
      quota,
      taken,
      // Never another tenant's names.
      holderText(uid) {
        const holder = byUid.get(uid);
        const tenant = tenantOf(service);
        // Two in dispute have no tenant in common.
        const isOwn = holder !== undefined && tenant !== undefined && tenantOf(holder) === tenant;
        return isOwn ? `Service ${holder.namespace}/${holder.name}` : 'another tenant';
      },
    });
  countHeld(services, { held, taken, nodes, tenancy, quota });
  const first = services.map(decideOne);
  // Ports and limits only fill up, so what was refused is refused again: now with a message that knows all that was taken.
  const decisions = first.map((decision) => (decision.settings === null ? decideOne(decision.service) : decision));
  return decisions.map((decision) => withExcess(decision, tenancy, quota));
}

/** Before anything new is granted: what serves counts, also that of Services whose turn comes later. */
function countHeld(
  services: readonly ServiceObject[],
  {
    held,
    taken,
    nodes,
    tenancy,
    quota,
  }: Omit<Deciding, 'snapshot' | 'services'> & {
    readonly taken: Map<string, string>;
  },
): void {
  for (const service of services) {
    const membership = tenancy.membershipOf(service.namespace);
    const tenant = membership.kind === 'tenant' ? membership.tenant.name : held.services.get(service.uid)?.tenant;
    const ports = service.ports.filter((port) => holdsPort(service, port, { nodes: nodes.entries, taken }));
    if (tenant !== undefined && ports.length > 0) quota.use(tenant, service, ports.length);
  }
}

function withExcess(decision: Decision, tenancy: Tenancy, quota: Quota): Decision {
  const tenant = decision.settings === null ? undefined : tenancy.tenants.get(decision.tenant ?? '');
  const message = tenant && quota.excessOf(tenant);
  return message === undefined
    ? decision
    : { ...decision, degraded: [...decision.degraded, { reason: 'OverLimit', message }] };
}

const NO_ENDPOINTS: ServiceEndpoints = { entries: [], forbidden: [] };

function withEndpoints(snapshot: Snapshot, nodes: Nodes, decisions: readonly Decision[]): Outcome[] {
  const slicesOf = Map.groupBy(snapshot.slices, serviceKeyOf);
  const mayUse = trustFor(snapshot, nodes.entries);
  return decisions.map((decision) => {
    if (decision.settings === null) return { ...decision, endpoints: NO_ENDPOINTS };
    const { service } = decision;
    const served = { ...service, ports: service.ports.filter((_, i) => decision.ports[i]?.error === null) };
    const slices = [...(slicesOf.get(`${service.namespace}/${service.name}`) ?? [])].sort(byName);
    const endpoints = endpointsFor(served, slices, mayUse);
    const isFine = decision.accepted.reason === 'Accepted' && endpoints.forbidden.length > 0;
    return isFine
      ? { ...decision, endpoints, accepted: { reason: 'EndpointForbidden', message: forbiddenMessage(endpoints) } }
      : { ...decision, endpoints };
  });
}

function serviceKeyOf(slice: SliceObject): string {
  return `${slice.namespace}/${slice.serviceName}`;
}

function forbiddenMessage({ forbidden }: ServiceEndpoints): string {
  return `endpoint ${listed(forbidden)}; such endpoints are not used: give addresses of pods of this namespace`;
}

function tenantEntries(outcomes: readonly Outcome[], tenancy: Tenancy, quota: Quota): TenantEntry[] {
  const inUse = new Set(outcomes.map(({ tenant }) => tenant));
  return [...tenancy.tenants.values()]
    .filter(({ name, policy }) => policy !== null || inUse.has(name))
    .map((tenant) => ({ kind: 'tenant', id: tenantId(tenant.name), ...tenant, used: quota.usedBy(tenant.name) }));
}

function serviceEntry(outcome: Outcome): ServiceEntry {
  return { kind: 'service', id: serviceId(outcome.service.uid), ...statusOf(outcome), settings: outcome.settings };
}

function statusOf({ service, tenant, accepted, degraded, ports, nodes }: Outcome): ServiceStatus {
  const { uid, namespace, name } = service;
  return { uid, namespace, name, tenant, accepted, degraded, ports, nodes };
}

function byName(a: { namespace: string; name: string }, b: { namespace: string; name: string }): number {
  if (a.namespace !== b.namespace) return a.namespace < b.namespace ? -1 : 1;
  return a.name < b.name ? -1 : a.name > b.name ? 1 : 0;
}
