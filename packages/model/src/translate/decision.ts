// What is decided about one Service: whether it is accepted, what of it is served, and where.

import type { FleetSettings } from '../fleet-settings.ts';
import { joinItems, joinSentences } from '../message-text.ts';
import { UNRESTRICTED_GRANTS } from '../policy.ts';
import { type ParsedSettings, serviceSettingsFor } from '../settings/parse-settings.ts';
import type { ServiceSettings } from '../settings/service-settings.ts';
import type { ServiceObject } from '../snapshot.ts';
import type { ServiceAllocation } from './allocate/allocations.ts';
import type { Placement } from './allocate/placement.ts';
import {
  type NodeRequirements,
  nodeRequirementsFor,
  type OwnerText,
  placeInPool,
  type RefusalCheck,
  refusalCheckFor,
} from './allocate/pool-placement.ts';
import type { PortAllocations } from './allocate/port-allocations.ts';
import { portRefusalsFor, type Refusal, serviceRefusalFor } from './allocate/port-refusals.ts';
import type { Quota } from './allocate/quota.ts';
import { type QuotaDependency, QuotaRecorder } from './allocate/quota.ts';
import {
  hasTooManyHosts,
  hostRefusalFor,
  type PortModes,
  portModesFor,
  wantedResourceKeys,
} from './allocate/shared-ports.ts';
import type { Nodes } from './nodes.ts';
import type { SecretIndex } from './secret-index.ts';
import type { ServedConfig } from './service-result.ts';
import { refusedResult, type ServiceResult, servedResult, withStillServedText } from './service-result.ts';
import { type Membership, policyText, type Tenant } from './tenancy.ts';

export interface Decision extends ServiceResult {
  /** What it could use if somebody else gave it up: `portKey`, `shareKey` and `claimKey`. */
  readonly wantedResources: readonly string[];
  /** What it depends on of its tenant's limits; undefined: on nothing. */
  readonly quotaDependency: QuotaDependency | undefined;
  /** Of one whose ports are taken; undefined: it has to be asked. */
  readonly isStillRefused?: RefusalCheck | undefined;
}

/** Before anything is known of what it waits for. */
type PlacedResult = ServiceResult & Pick<Decision, 'isStillRefused'>;

export interface DecisionContext {
  readonly fleet: FleetSettings;
  readonly nodes: Nodes;
  readonly secrets: SecretIndex;
  readonly membership: Membership;
  readonly allocation: ServiceAllocation | undefined;
  readonly quota: QuotaRecorder;
  readonly portAllocations: PortAllocations;
  readonly ownerText: OwnerText;
}

/** Decides one Service; counts what it gets in `quota` and `taken`. */
export function decideService(
  service: ServiceObject,
  world: Omit<DecisionContext, 'quota'> & { readonly quota: Quota },
): Decision {
  const quota = new QuotaRecorder(world.quota);
  const decision = decideWithoutStaleAllocation(service, { ...world, quota });
  return { ...decision, quotaDependency: quota.dependency };
}

function decideWithoutStaleAllocation(
  service: ServiceObject,
  context: DecisionContext,
): Omit<Decision, 'quotaDependency'> {
  const decision = decideOnce(service, context);
  // What is refused whole holds nothing any more, and is told what it will be told from now on.
  const isLost = decision.settings === null && context.allocation !== undefined;
  return isLost ? decideOnce(service, { ...context, allocation: undefined }) : decision;
}

function decideOnce(service: ServiceObject, context: DecisionContext): Omit<Decision, 'quotaDependency'> {
  const { fleet, allocation, portAllocations } = context;
  const parsed = serviceSettingsFor(service);
  const wish = parsed.kind === 'settings' ? parsed.settings : allocation?.settings;
  const asked = parsed.kind === 'settings' ? parsed.settings.hosts : [];
  const has = allocation?.settings.hosts ?? [];
  const listeners = portAllocations.listenersOf(service.uid);
  const modes = portModesFor(service, { fleet, hosts: [...asked, ...has], tls: wish?.tls, listeners, isGranted: true });
  // All of them are looked through with every change of somebody else.
  const claimed = new Set([asked, has].filter((hosts) => !hasTooManyHosts(hosts)).flat());
  return {
    ...evaluateService(service, parsed, context),
    wantedResources: wantedResourceKeys(service.ports, modes, [...claimed]),
  };
}

function evaluateService(service: ServiceObject, parsed: ParsedSettings, context: DecisionContext): PlacedResult {
  const { allocation, membership } = context;
  const tenant = membership.kind === 'tenant' ? membership.tenant : tenantInDispute(allocation);
  const asked = parsed.kind === 'settings' && membership.kind === 'tenant' ? parsed.settings : undefined;
  const credentials = asked?.tls && context.secrets.credentialsFor(service, asked.tls);
  const objection =
    settingsRefusal(membership, parsed) ??
    (tenant && grantRefusal(service, asked, { tenant, ...context })) ??
    (credentials?.kind === 'refused' ? credentials.refusal : undefined);
  const settings = (objection === undefined ? asked : allocation?.settings) ?? null;
  // Of one that is refused whole its ports are judged by what it asks for, as far as that can be read.
  const meant = settings ?? asked;
  const hosts = meant?.hosts ?? [];
  const listeners = context.portAllocations.listenersOf(service.uid);
  const isGranted = objection === undefined;
  const modes = meant
    ? portModesFor(service, {
        fleet: context.fleet,
        hosts,
        tls: meant.tls,
        listeners,
        exclusivePorts: allocation?.exclusivePorts,
        isGranted,
      })
    : NO_MODES;
  const judging = {
    ...context,
    hosts,
    modes,
    objection,
    requestedSettings: parsed.kind === 'settings' ? parsed.settings : undefined,
  };
  const badPorts = tenant && portRefusalsFor(service, { ...judging, tenant });
  if (tenant === undefined || badPorts === undefined || settings === null) {
    if (objection === undefined) throw new Error('without objection a Service has tenant and settings');
    return refusedResult(service, tenant?.name ?? null, objection, badPorts);
  }
  const ports = service.ports.filter((port) => !badPorts.has(port));
  const refusal = serviceRefusalFor(ports, badPorts, { tenant, ...context });
  if (refusal !== undefined) return refusedResult(service, tenant.name, objection ?? refusal, badPorts);
  const requirements =
    membership.kind === 'tenant'
      ? nodeRequirementsFor(settings, tenant, context.fleet)
      : nodeRequirementsInDispute(service, { ...context, settings, tenant });
  const request = { ...context, service, ports, modes, hosts, tenant: tenant.name };
  const result = placeInPool(requirements, request);
  if (result.kind === 'conflict') {
    const isStillRefused = refusalCheckFor(requirements, request, result.refusal);
    return { ...refusedResult(service, tenant.name, objection ?? result.refusal, badPorts), isStillRefused };
  }
  const placement: Placement =
    result.kind === 'placed' ? result.placement : { listeners: [], nodes: [], conflicts: new Map() };
  const stays = result.kind === 'placed' ? result.stays : undefined;
  return servedResult(
    service,
    {
      tenant,
      settings,
      refusal: (objection && withStillServedText(objection)) ?? stays,
      placement,
      badPorts,
      requirements,
      modes,
      secrets: context.secrets,
    },
    context,
  );
}

const NO_MODES: PortModes = new Map();

function settingsRefusal(membership: Membership, parsed: ParsedSettings): Refusal | undefined {
  if (membership.kind === 'disputed') return { reason: 'TenantConflict', message: membership.message };
  if (parsed.kind === 'invalid') return { reason: 'InvalidAnnotation', message: joinSentences(parsed.mistakes) };
  return undefined;
}

/** What the tenant may not have, or another one has. */
function grantRefusal(
  service: ServiceObject,
  asked: ServiceSettings | undefined,
  context: DecisionContext & { readonly tenant: Tenant },
): Refusal | undefined {
  if (asked === undefined) return undefined;
  const { pool } = nodeRequirementsFor(asked, context.tenant, context.fleet);
  const { hosts, tls } = asked;
  return poolRefusal(asked, context.tenant) ?? hostRefusalFor(service, { hosts, tls, pool }, context);
}

function poolRefusal({ pool }: ServiceSettings, { name, policy, grants }: Tenant): Refusal | undefined {
  if (pool === null || grants.pools.includes(pool)) return undefined;
  const message = `tenant "${name}" may not use pool "${pool}", only ${joinItems(grants.pools)}; use one of them in annotation weir.dev/pool, or ask for it in ${policyText(policy)}`;
  return { reason: 'PoolNotAllowed', message };
}

/** How many nodes the tenant of a Service in dispute may have is not known: it keeps those that it has. */
function nodeRequirementsInDispute(
  { uid }: ServiceObject,
  { settings, tenant, fleet, portAllocations }: DecisionContext & Pick<ServedConfig, 'settings' | 'tenant'>,
): NodeRequirements {
  const nodes = new Set(portAllocations.listenersOf(uid).map(({ node }) => node)).size;
  return { ...nodeRequirementsFor(settings, tenant, fleet), nodeCount: Math.max(1, nodes) };
}

/** A Service in dispute goes on where it is, under the tenant that it had, of whom nothing more is known here. */
function tenantInDispute(held: ServiceAllocation | undefined): Tenant | undefined {
  if (held === undefined) return undefined;
  const grants = { ...UNRESTRICTED_GRANTS, pools: [held.pool] };
  return { name: held.tenant, policy: null, namespaces: [], limits: {}, grants };
}
