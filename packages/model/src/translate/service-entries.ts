import { bytesText, joinItems, joinSentences } from '../message-text.ts';
import type { ServiceObject, ServicePort, SliceObject } from '../snapshot.ts';
import { type Entry, type PortEntry, type ServiceEntry, serviceId } from '../table/entry.ts';
import type { ServedPortNames } from './allocate/allocations.ts';
import { portKey } from './allocate/allocations.ts';
import type { Decision } from './decision.ts';
import { EXCESSIVE_BYTES } from './endpoint-budgets.ts';
import { NOT_A_POD_ADDRESS } from './endpoint-trust.ts';
import {
  type EndpointCheck,
  endpointsFor,
  endpointsWithin,
  portNameKey,
  type ServiceEndpoints,
  type SliceIndex,
} from './endpoints.ts';
import { policyText, type Tenant } from './tenancy.ts';

export interface TranslateServiceContext {
  readonly slices: SliceIndex;
  readonly checkEndpoint: EndpointCheck;
  /** The message if the Service's tenant uses more than its limits; otherwise undefined. */
  readonly excess: string | undefined;
  /** The names that the slices had for the served ports in the last table. */
  readonly previousPortNames: ServedPortNames;
  /** The most bytes of the endpoints' entries. */
  readonly maxEndpointBytes: number;
}

const NO_ENDPOINTS: ServiceEndpoints = { entries: [], bytes: 0, forbidden: [] };

/** Adds to a decision the endpoints of the served ports, and the messages about refused endpoints and about the tenant's limits. */
export function translateService(
  decision: Decision,
  { slices, checkEndpoint, excess, previousPortNames, maxEndpointBytes: maxBytes }: TranslateServiceContext,
): TranslatedService {
  if (decision.settings === null) return { ...decision, endpoints: NO_ENDPOINTS };
  const { service, degraded } = decision;
  const former = formerPortNames(service, slices.of(service), previousPortNames);
  const ports = service.ports.filter((_, i) => decision.ports[i]?.error === null).map((port) => withName(port, former));
  const endpoints = endpointsFor({ ...service, ports }, slices.of(service), { checkEndpoint, maxBytes });
  const isOnlyProblem = decision.accepted.reason === 'Accepted' && endpoints.forbidden.length > 0;
  return {
    ...decision,
    ports: former.size === 0 ? decision.ports : decision.ports.map((port) => withFormerName(port, former)),
    endpoints,
    degraded: excess === undefined ? degraded : [...degraded, { reason: 'OverLimit', message: excess }],
    accepted: isOnlyProblem ? { reason: 'EndpointForbidden', message: forbiddenMessage(endpoints) } : decision.accepted,
  };
}

/** Leaves out endpoints, so that the rest takes at most `maxBytes`. If endpoints are left out, the status says so. */
export function withEndpointsWithin(
  translated: TranslatedService,
  maxBytes: number,
  tenant: Tenant | undefined,
): TranslatedService {
  const endpoints = endpointsWithin(translated.endpoints, maxBytes);
  if (endpoints.entries.length === translated.endpoints.entries.length && endpoints.bytes !== EXCESSIVE_BYTES)
    return translated;
  const { accepted } = translated;
  if (accepted.reason !== 'Accepted' || tenant === undefined) return { ...translated, endpoints };
  return { ...translated, endpoints, accepted: { reason: 'QuotaExceeded', message: endpointBytesMessage(tenant) } };
}

function endpointBytesMessage({ name, policy, limits }: Tenant): string {
  const limit = bytesText(limits.tableBytes ?? 0);
  return `some endpoints are not used, because the Services of tenant "${name}" may take ${limit} in the routing table (limits.tableBytes), and each port repeats the endpoints of the Service; use fewer ports or endpoints, or ask for a higher limit in ${policyText(policy)}`;
}

/**
 * Returns the former name of each renamed port whose slices still have only the former name, by `portKey`. The EndpointSlice controller
 * renames the port in its slices a moment later, and the endpoints must not vanish until then. A Service without selector gets no former
 * names, because its slices are written by hand.
 */
function formerPortNames(
  service: ServiceObject,
  slices: readonly SliceObject[],
  previous: ServedPortNames,
): ReadonlyMap<string, string | null> {
  const former = new Map<string, string | null>();
  if (!service.hasSelector || previous.size === 0) return former;
  const inSlices = new Set(slices.flatMap(({ ports }) => ports.map(portNameKey)));
  const current = new Set(service.ports.map(portNameKey));
  for (const port of service.ports) {
    const name = previous.get(portKey(port));
    if (name === undefined || inSlices.has(portNameKey(port))) continue;
    const key = portNameKey({ ...port, name });
    if (inSlices.has(key) && !current.has(key)) former.set(portKey(port), name);
  }
  return former;
}

function withName(port: ServicePort, former: ReadonlyMap<string, string | null>): ServicePort {
  const name = former.get(portKey(port));
  return name === undefined ? port : { ...port, name };
}

function withFormerName(port: PortEntry, former: ReadonlyMap<string, string | null>): PortEntry {
  const formerName = former.get(portKey(port));
  return formerName === undefined || port.error !== null ? port : { ...port, formerName };
}

/** Returns all table entries of a Service: the Service itself, its certificates, error pages, listeners and endpoints. */
export function serviceEntriesFor(translated: TranslatedService): readonly Entry[] {
  return [
    serviceEntry(translated),
    ...translated.certificates,
    ...(translated.errorPages === null ? [] : [translated.errorPages]),
    ...translated.listeners,
    ...translated.endpoints.entries,
  ];
}

function serviceEntry({
  service,
  tenant,
  accepted,
  degraded,
  settings,
  ports,
  pool,
  nodes,
}: TranslatedService): ServiceEntry {
  const { uid, namespace, name } = service;
  const kind = 'service';
  return { kind, id: serviceId(uid), uid, namespace, name, tenant, accepted, degraded, ports, pool, nodes, settings };
}

function forbiddenMessage({ forbidden }: ServiceEndpoints): string {
  const canBeAllowed = forbidden.some(({ reason }) => reason === NOT_A_POD_ADDRESS);
  const policyHelp = canBeAllowed ? ', or ask the operator for allowedEndpointCIDRs in the TenantPolicy' : '';
  const help = [
    ...(forbidden.some(({ subject }) => subject === 'address')
      ? [`use addresses of pods of this namespace${policyHelp}`]
      : []),
    ...(forbidden.some(({ subject }) => subject === 'port') ? [NODE_PORT_HELP] : []),
  ];
  const list = joinItems(forbidden.map(({ text }) => text));
  return joinSentences([`endpoints that are not allowed are ignored: ${list}`, ...help]);
}

const NODE_PORT_HELP = 'at the address of a node, use a port that is neither reserved nor a port of a load balancer';

export interface TranslatedService extends Decision {
  readonly endpoints: ServiceEndpoints;
}
