import type { FleetSettings } from '../fleet-settings.ts';
import { joinItems, joinSentences } from '../message-text.ts';
import { UNRESTRICTED_GRANTS } from '../policy.ts';
import { type ParsedSettings, serviceSettingsFor } from '../settings/parse-settings.ts';
import type { ServiceSettings } from '../settings/service-settings.ts';
import type { ServiceObject } from '../snapshot.ts';
import type { CertificateEntry } from '../table/entry.ts';
import type { ServiceAllocation } from './allocate/allocations.ts';
import type { Placement } from './allocate/placement.ts';
import {
  type NodeRequirements,
  nodeRequirementsFor,
  placeInPool,
  type RefusedPlacement,
} from './allocate/pool-placement.ts';
import type { OwnerText, PortAllocations } from './allocate/port-allocations.ts';
import { portRefusalsFor, type Refusal, serviceRefusalFor, withinPortLimit } from './allocate/port-refusals.ts';
import { type Quota, type QuotaDependency, QuotaRecorder } from './allocate/quota.ts';
import {
  hasTooManyHosts,
  hostRefusalFor,
  type PortModes,
  portModesFor,
  wantedResourceKeys,
} from './allocate/shared-ports.ts';
import type { ConfigMapIndex, ErrorPagesResult } from './config-map-index.ts';
import type { Nodes } from './nodes.ts';
import type { SecretIndex } from './secret-index.ts';
import {
  refusedResult,
  type ServedConfig,
  type ServedErrorPages,
  type ServiceResult,
  servedResult,
  withStillServedText,
} from './service-result.ts';
import { type AcceptedContent, contentBytes } from './table-bytes.ts';
import { type Membership, policyText, type Tenant } from './tenancy.ts';

export interface Decision extends ServiceResult {
  /** Keys of the ports and hosts that block the Service while another Service owns them: `portKey`, `portShareKey` and `portHostKey`. */
  readonly wantedResources: readonly string[];
  /** The questions about the tenant's limits; undefined if the decision does not depend on the tenant's usage. */
  readonly quotaDependency: QuotaDependency | undefined;
  /** Whether the Service could have further nodes, but `DecisionContext.mayAddNodes` was false. */
  readonly wantsMoreNodes: boolean;
  /** The placement that was refused. If undefined, every change of a wanted resource requires a new decision. */
  readonly refusedPlacement?: RefusedPlacement | undefined;
}

type Outcome = ServiceResult & Partial<Pick<Decision, 'refusedPlacement' | 'wantsMoreNodes'>>;

export interface DecisionContext {
  readonly fleet: FleetSettings;
  readonly nodes: Nodes;
  readonly secrets: SecretIndex;
  readonly configMaps: ConfigMapIndex;
  readonly membership: Membership;
  /** What the Service owns, and keeps while its new settings are refused; undefined if the Service owns nothing. */
  readonly allocation: ServiceAllocation | undefined;
  readonly quota: QuotaRecorder;
  /** The refusal of a Service with more ports than the fleet allows. */
  readonly portLimitRefusal: Refusal | undefined;
  readonly portAllocations: PortAllocations;
  readonly ownerText: OwnerText;
  /** Whether the Service may get more nodes than it has: see `PlacementRequest`. */
  readonly mayAddNodes: boolean;
}

/**
 * Decides whether a Service is accepted, which of its ports are served, and on which nodes. Changes no state, because the allocator
 * applies the result.
 */
export function decideService(
  completeService: ServiceObject,
  context: Omit<DecisionContext, 'quota' | 'portLimitRefusal'> & { readonly quota: Quota },
): Decision {
  const { service, portLimitRefusal } = withinPortLimit(completeService, context);
  const quota = new QuotaRecorder(context.quota);
  const input = { ...context, quota, portLimitRefusal };
  const outcome = evaluateService(service, input);
  // A Service that is refused as a whole loses its allocation. The second evaluation returns the message that later decisions, without
  // the allocation, would return.
  const isAllocationLost = outcome.settings === null && context.allocation !== undefined;
  const result = isAllocationLost ? evaluateService(service, { ...input, allocation: undefined }) : outcome;
  const allocation = isAllocationLost ? undefined : context.allocation;
  const wantedResources = wantedResourcesOf(service, { ...context, allocation });
  const accepted = result.accepted.reason === 'Accepted' ? (portLimitRefusal ?? result.accepted) : result.accepted;
  return { wantsMoreNodes: false, ...result, accepted, wantedResources, quotaDependency: quota.dependency };
}

function wantedResourcesOf(
  service: ServiceObject,
  { fleet, allocation, portAllocations }: Pick<DecisionContext, 'fleet' | 'allocation' | 'portAllocations'>,
): readonly string[] {
  const parsed = serviceSettingsFor(service);
  const settings = parsed.kind === 'settings' ? parsed.settings : allocation?.settings;
  const requestedHosts = parsed.kind === 'settings' ? parsed.settings.hosts : [];
  const currentHosts = allocation?.settings.hosts ?? [];
  const hosts = [...requestedHosts, ...currentHosts];
  const listeners = portAllocations.listenersOf(service.uid);
  const modes =
    settings === undefined
      ? NO_MODES
      : portModesFor(service, { fleet, settings: { ...settings, hosts }, listeners, isAccepted: true });
  // Leaves out a list with too many hosts, because each host takes an entry in the index of the wait list.
  const indexed = new Set([requestedHosts, currentHosts].filter((list) => !hasTooManyHosts(list)).flat());
  return wantedResourceKeys(service.ports, modes, [...indexed]);
}

function evaluateService(service: ServiceObject, context: DecisionContext): Outcome {
  const { allocation, membership } = context;
  const { tenant, requestedSettings, requested, certificates, errorPages, refusal } = requestOf(service, context);
  const settings = (refusal === undefined ? requested : allocation?.settings) ?? null;
  // If a Service is refused as a whole and its requested settings are valid, these settings decide which of its ports are refused.
  const judged = settings ?? requested;
  const hosts = judged?.hosts ?? [];
  const modes = judged === undefined ? NO_MODES : modesFor(service, judged, { ...context, isAccepted: !refusal });
  const judgement = { ...context, hosts, modes, requestedSettings, settingsRefusal: refusal };
  const portRefusals = tenant && portRefusalsFor(service, { ...judgement, tenant });
  if (tenant === undefined || portRefusals === undefined || settings === null) {
    if (refusal === undefined) throw new Error('expected a tenant and settings for a Service without refusal');
    return refusedResult(service, tenant?.name ?? null, refusal, portRefusals);
  }
  const ports = service.ports.filter((port) => !portRefusals.has(port));
  const parts = { settings, certificates, errorPages: errorPages.entry };
  const serviceRefusal = serviceRefusalFor(ports, portRefusals, { tenant, parts, ...context });
  if (serviceRefusal !== undefined) return refusedResult(service, tenant.name, refusal ?? serviceRefusal, portRefusals);
  const requirements =
    membership.kind === 'tenant'
      ? nodeRequirementsFor(settings, tenant, context.fleet)
      : nodeRequirementsInDispute(service, { ...context, settings, tenant });
  const { nodeCount } = requirements;
  const affordableNodes = (count: number): number =>
    context.quota.nodesWithin(tenant, { uid: service.uid, ports: count, nodeCount });
  const request = { service, ports, modes, settings, tenant: tenant.name, allocation };
  const result = placeInPool(requirements, { ...context, ...request, affordableNodes });
  if (result.kind === 'conflict') {
    // If a Service loses its listeners now, the next decision about this Service may have another result, because that decision finds no
    // listeners.
    const isNew = allocation === undefined && context.portAllocations.listenersOf(service.uid).length === 0;
    const refusedPlacement = isNew ? { requirements, request, refusal: result.refusal } : undefined;
    return { ...refusedResult(service, tenant.name, refusal ?? result.refusal, portRefusals), refusedPlacement };
  }
  const { placement, stayReason } =
    result.kind === 'placed' ? result : { placement: NO_PLACEMENT, stayReason: undefined };
  const keptRefusal = (refusal && withStillServedText(refusal)) ?? stayReason;
  const { secrets } = context;
  const pages = refusal === undefined ? errorPages : { entry: allocation?.errorPages ?? null, message: undefined };
  const config = { tenant, settings, placement, portRefusals, requirements, modes, secrets, errorPages: pages };
  const input = { ...config, refusal: keptRefusal };
  return { ...servedResult(service, input, context), wantsMoreNodes: placement.wantsMoreNodes };
}

/** Returns what the Service requests, for which tenant, and why the request is refused. */
function requestOf(
  service: ServiceObject,
  context: DecisionContext,
): {
  readonly tenant: Tenant | undefined;
  /** The settings that the annotations request; undefined if the annotations are invalid. */
  readonly requestedSettings: ServiceSettings | undefined;
  /** The same settings as `requestedSettings`, but undefined if the tenant is disputed. */
  readonly requested: ServiceSettings | undefined;
  /** The certificates for the requested settings; empty if there are none, or if one cannot be used. */
  readonly certificates: readonly CertificateEntry[];
  /** The error pages for the requested settings. */
  readonly errorPages: ServedErrorPages;
  readonly refusal: Refusal | undefined;
} {
  const { membership, allocation, secrets, configMaps } = context;
  const parsed = serviceSettingsFor(service);
  const tenant = membership.kind === 'tenant' ? membership.tenant : tenantInDispute(allocation);
  const requestedSettings = parsed.kind === 'settings' ? parsed.settings : undefined;
  const requested = membership.kind === 'tenant' ? requestedSettings : undefined;
  const credentials = requested?.tls && secrets.credentialsFor(service, requested.tls);
  const certificates = credentials?.kind === 'good' ? credentials.certificates : [];
  const errorPages = errorPagesFor(requested && configMaps.errorPagesFor(service, requested), requested, allocation);
  const content = requested && { settings: requested, certificates, errorPages: errorPages.entry };
  const refusal =
    settingsRefusal(membership, parsed) ??
    (allocation === undefined ? context.portLimitRefusal : undefined) ??
    (tenant && grantRefusal(service, requested, { tenant, ...context })) ??
    (credentials?.kind === 'refused' ? credentials.refusal : undefined) ??
    (tenant && content && allocation && tableBytesRefusal(content, allocation, { tenant, quota: context.quota }));
  return { tenant, requestedSettings, requested, certificates, errorPages, refusal };
}

/** Replaces pages that are not read by the pages of the last table, if these have the same ConfigMap. */
function errorPagesFor(
  result: ErrorPagesResult | undefined,
  requested: ServiceSettings | undefined,
  allocation: ServiceAllocation | undefined,
): ServedErrorPages {
  if (result === undefined) return NO_ERROR_PAGES;
  const { pages, message } = result;
  if (pages !== 'last') return { entry: pages, message };
  const isSame = allocation !== undefined && allocation.settings.errorPages === requested?.errorPages;
  return { entry: isSame ? allocation.errorPages : null, message };
}

const NO_ERROR_PAGES: ServedErrorPages = { entry: null, message: undefined };

/** Returns a refusal if the requested settings of a served Service take more bytes in the table than the tenant has left. */
function tableBytesRefusal(
  requested: AcceptedContent,
  allocation: ServiceAllocation,
  { tenant, quota }: { readonly tenant: Tenant; readonly quota: QuotaRecorder },
): Refusal | undefined {
  const bytes = contentBytes(requested) - contentBytes(allocation);
  const message = bytes > 0 ? quota.settingsRefusalFor(tenant, bytes) : undefined;
  return message === undefined ? undefined : { reason: 'QuotaExceeded', message };
}

function modesFor(
  service: ServiceObject,
  settings: ServiceSettings,
  { fleet, allocation, portAllocations, isAccepted }: DecisionContext & { readonly isAccepted: boolean },
): PortModes {
  const listeners = portAllocations.listenersOf(service.uid);
  const exclusivePorts = allocation?.exclusivePorts;
  return portModesFor(service, { fleet, settings, listeners, exclusivePorts, isAccepted });
}

const NO_MODES: PortModes = new Map();
const NO_PLACEMENT: Placement = {
  listeners: [],
  nodes: [],
  conflicts: new Map(),
  wantsMoreNodes: false,
  isLimited: false,
};

function settingsRefusal(membership: Membership, parsed: ParsedSettings): Refusal | undefined {
  if (membership.kind === 'disputed') return { reason: 'TenantConflict', message: membership.message };
  if (parsed.kind === 'invalid') return { reason: 'InvalidAnnotation', message: joinSentences(parsed.mistakes) };
  return undefined;
}

/** Returns a refusal if the tenant may not have the requested pool or hosts, or if another Service owns one of the hosts. */
function grantRefusal(
  service: ServiceObject,
  requested: ServiceSettings | undefined,
  context: DecisionContext & { readonly tenant: Tenant },
): Refusal | undefined {
  if (requested === undefined) return undefined;
  const { pool } = nodeRequirementsFor(requested, context.tenant, context.fleet);
  return poolRefusal(requested, context.tenant) ?? hostRefusalFor(service, { settings: requested, pool }, context);
}

function poolRefusal({ pool }: ServiceSettings, { name, policy, grants }: Tenant): Refusal | undefined {
  if (pool === null || grants.pools.includes(pool)) return undefined;
  const message = `tenant "${name}" may not use pool "${pool}", only ${joinItems(grants.pools)}; set annotation weir.dev/pool to one of these, or ask the operator to allow the pool in ${policyText(policy)}`;
  return { reason: 'PoolNotAllowed', message };
}

/**
 * Returns the node requirements of a Service whose tenant is disputed. The Service keeps its number of nodes, because it is not known
 * which policy applies.
 */
function nodeRequirementsInDispute(
  { uid }: ServiceObject,
  { settings, tenant, fleet, portAllocations }: DecisionContext & Pick<ServedConfig, 'settings' | 'tenant'>,
): NodeRequirements {
  const nodeCount = Math.max(1, new Set(portAllocations.listenersOf(uid).map(({ node }) => node)).size);
  return { ...nodeRequirementsFor(settings, tenant, fleet), nodeCount, requestedNodes: nodeCount };
}

/**
 * Returns the tenant to use for a Service whose tenant is disputed: the tenant in the Service's allocation, without its policy and limits,
 * and with only the allocated pool. So the Service keeps its tenant and pool. Returns undefined if the Service has no allocation.
 */
function tenantInDispute(allocation: ServiceAllocation | undefined): Tenant | undefined {
  if (allocation === undefined) return undefined;
  const grants = { ...UNRESTRICTED_GRANTS, pools: [allocation.pool] };
  return { name: allocation.tenant, policy: null, namespaces: [], limits: {}, grants };
}
