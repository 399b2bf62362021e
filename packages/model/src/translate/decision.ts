// What is decided about one Service: whether it is accepted, what of it is served, and where.
import { OPEN_GRANTS } from '../policy.ts';
import type { ServiceSettings } from '../settings/service-settings.ts';
import { type ParsedSettings, settingsFor } from '../settings/settings-for.ts';
import type { FleetSettings, ServiceObject } from '../snapshot.ts';
import { type Asked, AskedQuota } from './asked-quota.ts';
import type { Given } from './degraded.ts';
import type { HeldService } from './held.ts';
import { hostRefusal } from './host-claims.ts';
import type { Nodes } from './nodes.ts';
import type { Placement } from './placement.ts';
import { type NodeWish, nodeWishFor, placeInPool } from './pool.ts';
import { portRefusals, type Refusal, wholeRefusal } from './port-refusals.ts';
import type { Quota } from './quota.ts';
import type { SecretBook } from './secret-book.ts';
import { isTooMany, modesFor, type PortModes, wantsFor } from './shared-ports.ts';
import { type HolderText, type StillTaken, stillTakenFor } from './still-taken.ts';
import type { TakenPorts } from './taken-ports.ts';
import { type Membership, policyText, type Tenant } from './tenancy.ts';
import { listed, sentences } from './text.ts';
import { refused, served, servedOn, type Verdicts } from './verdicts.ts';

export interface Decision extends Verdicts {
  /** What it could use if somebody else gave it up: `portKey`, `shareKey` and `claimKey`. */
  readonly wants: readonly string[];
  /** What it depends on of its tenant's limits; undefined: on nothing. */
  readonly asked: Asked | undefined;
  /** Of one whose ports are taken; undefined: it has to be asked. */
  readonly isStillTaken?: StillTaken | undefined;
}

/** Before anything is known of what it waits for. */
type Judgement = Verdicts & Pick<Decision, 'isStillTaken'>;

export interface DecisionContext {
  readonly fleet: FleetSettings;
  readonly nodes: Nodes;
  readonly secrets: SecretBook;
  readonly membership: Membership;
  readonly held: HeldService | undefined;
  readonly quota: AskedQuota;
  readonly taken: TakenPorts;
  readonly holderText: HolderText;
}

/** Decides one Service; counts what it gets in `quota` and `taken`. */
export function decide(
  service: ServiceObject,
  world: Omit<DecisionContext, 'quota'> & { readonly quota: Quota },
): Decision {
  const quota = new AskedQuota(world.quota);
  const decision = decideAsking(service, { ...world, quota });
  return { ...decision, asked: quota.asked };
}

function decideAsking(service: ServiceObject, context: DecisionContext): Omit<Decision, 'asked'> {
  const decision = decideOnce(service, context);
  // What is refused whole holds nothing any more, and is told what it will be told from now on.
  const isLost = decision.settings === null && context.held !== undefined;
  return isLost ? decideOnce(service, { ...context, held: undefined }) : decision;
}

function decideOnce(service: ServiceObject, context: DecisionContext): Omit<Decision, 'asked'> {
  const { fleet, held, taken } = context;
  const parsed = settingsFor(service);
  const wish = parsed.kind === 'settings' ? parsed.settings : held?.settings;
  const asked = parsed.kind === 'settings' ? parsed.settings.hosts : [];
  const has = held?.settings.hosts ?? [];
  const listeners = taken.listenersOf(service.uid);
  const modes = modesFor(service, { fleet, hosts: [...asked, ...has], tls: wish?.tls, listeners, isGranted: true });
  // All of them are looked through with every change of somebody else.
  const claimed = new Set([asked, has].filter((hosts) => !isTooMany(hosts)).flat());
  return { ...judge(service, parsed, context), wants: wantsFor(service.ports, modes, [...claimed]) };
}

function judge(service: ServiceObject, parsed: ParsedSettings, context: DecisionContext): Judgement {
  const { held, membership } = context;
  const tenant = membership.kind === 'tenant' ? membership.tenant : heldTenant(held);
  const asked = parsed.kind === 'settings' && membership.kind === 'tenant' ? parsed.settings : undefined;
  const credentials = asked?.tls && context.secrets.credentialsFor(service, asked.tls);
  const objection =
    objectionTo(membership, parsed) ??
    (tenant && refusalOf(service, asked, { tenant, ...context })) ??
    (credentials?.kind === 'refused' ? credentials.refusal : undefined);
  const settings = (objection === undefined ? asked : held?.settings) ?? null;
  // Of one that is refused whole its ports are judged by what it asks for, as far as that can be read.
  const meant = settings ?? asked;
  const hosts = meant?.hosts ?? [];
  const listeners = context.taken.listenersOf(service.uid);
  const isGranted = objection === undefined;
  const modes = meant
    ? modesFor(service, { fleet: context.fleet, hosts, tls: meant.tls, listeners, alone: held?.alone, isGranted })
    : NO_MODES;
  const judging = {
    ...context,
    hosts,
    modes,
    objection,
    asked: parsed.kind === 'settings' ? parsed.settings : undefined,
  };
  const badPorts = tenant && portRefusals(service, { ...judging, tenant });
  if (tenant === undefined || badPorts === undefined || settings === null) {
    if (objection === undefined) throw new Error('without objection a Service has tenant and settings');
    return refused(service, tenant?.name ?? null, objection, badPorts);
  }
  const ports = service.ports.filter((port) => !badPorts.has(port));
  const refusal = wholeRefusal(ports, badPorts, { tenant, ...context });
  if (refusal !== undefined) return refused(service, tenant.name, objection ?? refusal, badPorts);
  const wish =
    membership.kind === 'tenant'
      ? nodeWishFor(settings, tenant, context.fleet)
      : heldWish(service, { ...context, settings, tenant });
  const request = { ...context, service, ports, modes, hosts, tenant: tenant.name };
  const result = placeInPool(wish, request);
  if (result.kind === 'conflict') {
    const isStillTaken = stillTakenFor(wish, request, result.refusal);
    return { ...refused(service, tenant.name, objection ?? result.refusal, badPorts), isStillTaken };
  }
  const placement: Placement =
    result.kind === 'placed' ? result.placement : { listeners: [], nodes: [], conflicts: new Map() };
  const stays = result.kind === 'placed' ? result.stays : undefined;
  return served(
    service,
    {
      tenant,
      settings,
      objection: (objection && servedOn(objection)) ?? stays,
      placement,
      badPorts,
      wish,
      modes,
      secrets: context.secrets,
    },
    context,
  );
}

const NO_MODES: PortModes = new Map();

function objectionTo(membership: Membership, parsed: ParsedSettings): Refusal | undefined {
  if (membership.kind === 'disputed') return { reason: 'TenantConflict', message: membership.message };
  if (parsed.kind === 'invalid') return { reason: 'InvalidAnnotation', message: sentences(parsed.mistakes) };
  return undefined;
}

/** What the tenant may not have, or another one has. */
function refusalOf(
  service: ServiceObject,
  asked: ServiceSettings | undefined,
  context: DecisionContext & { readonly tenant: Tenant },
): Refusal | undefined {
  if (asked === undefined) return undefined;
  const { pool } = nodeWishFor(asked, context.tenant, context.fleet);
  const { hosts, tls } = asked;
  return poolRefusal(asked, context.tenant) ?? hostRefusal(service, { hosts, tls, pool }, context);
}

function poolRefusal({ pool }: ServiceSettings, { name, policy, grants }: Tenant): Refusal | undefined {
  if (pool === null || grants.pools.includes(pool)) return undefined;
  const message = `tenant "${name}" may not use pool "${pool}", only ${listed(grants.pools)}; use one of them in annotation weir.dev/pool, or ask for it in ${policyText(policy)}`;
  return { reason: 'PoolNotAllowed', message };
}

/** How many nodes the tenant of a Service in dispute may have is not known: it keeps those that it has. */
function heldWish(
  { uid }: ServiceObject,
  { settings, tenant, fleet, taken }: DecisionContext & Pick<Given, 'settings' | 'tenant'>,
): NodeWish {
  const nodes = new Set(taken.listenersOf(uid).map(({ node }) => node)).size;
  return { ...nodeWishFor(settings, tenant, fleet), nodes: Math.max(1, nodes) };
}

/** A Service in dispute goes on where it is, under the tenant that it had, of whom nothing more is known here. */
function heldTenant(held: HeldService | undefined): Tenant | undefined {
  if (held === undefined) return undefined;
  const grants = { ...OPEN_GRANTS, pools: [held.pool] };
  return { name: held.tenant, policy: null, namespaces: [], limits: {}, grants };
}
