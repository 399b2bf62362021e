// What Services show about the use of limits: their tenant has used most of its traffic, a rule throttles the tenant, or a limit refuses
// their clients. These reasons are added to finished views, because most of them are known only from the ledger.
import type { DegradedReason } from '../reason.ts';
import { metricText, throttleMessage } from '../rules/rule-text.ts';
import { ANNOTATION_PREFIX } from '../settings/service-settings.ts';
import { type ServiceEntry, type StatusReason, serviceId, type TenantEntry, tenantId } from '../table/entry.ts';
import { entriesOf, type RoutingTable } from '../table/table.ts';
import { policyText } from '../translate/tenancy.ts';
import type { LimitReason, LimitRefusals } from '../usage/limit-refusals.ts';
import { periodsOf } from '../usage/period.ts';
import { type ServiceView, withDegradedReason } from './service-view.ts';

type Notice = StatusReason<DegradedReason>;

export interface UsageNotices {
  /** By name of the tenant: reasons for all of its Services. */
  readonly byTenant: ReadonlyMap<string, readonly Notice[]>;
  /** By UID of the Service. */
  readonly byService: ReadonlyMap<string, readonly Notice[]>;
}

export const NO_NOTICES: UsageNotices = { byTenant: new Map(), byService: new Map() };

/**
 * Returns the notices of a table. `traffic` has the message for each tenant that has used most of its traffic of this month, and
 * `refusals` the refusals that each Service shows, by UID.
 */
export function usageNoticesFor(
  table: RoutingTable,
  {
    traffic,
    refusals,
  }: { readonly traffic: ReadonlyMap<string, string>; readonly refusals: ReadonlyMap<string, LimitRefusals> },
): UsageNotices {
  return {
    byTenant: new Map([...traffic].map(([tenant, message]) => [tenant, overLimit(message)])),
    byService: new Map(
      [...refusals].flatMap(([uid, each]) => {
        const service = table.entries.get(serviceId(uid));
        if (service?.kind !== 'service') return [];
        const tenant = table.entries.get(tenantId(service.tenant ?? ''));
        // While two policies claim a tenant name, the tenant of this name may be another tenant than the Service's.
        const known = tenant?.kind === 'tenant' ? tenant : undefined;
        const isAmbiguous = known?.namespaces.includes(service.namespace) === false;
        const limited = { service, tenant: isAmbiguous ? 'ambiguous' : known } as const;
        return [[uid, overLimit(limitRefusalMessage(each, limited))] as const];
      }),
    ),
  };
}

const overLimit = (message: string): readonly Notice[] => [{ reason: 'OverLimit', message }];

/** The notices about throttles, by table. A table is immutable, and most tables have no throttle. */
const throttleNoticesByTable = new WeakMap<RoutingTable, UsageNotices['byTenant']>();

/** Returns the notices together with a notice about the throttle for each tenant that a rule throttles. */
export function withThrottleNotices(notices: UsageNotices, table: RoutingTable): UsageNotices {
  const throttles = throttleNoticesByTable.get(table) ?? throttleNoticesFor(table);
  throttleNoticesByTable.set(table, throttles);
  if (throttles.size === 0) return notices;
  const byTenant = new Map(notices.byTenant);
  for (const [tenant, own] of throttles) byTenant.set(tenant, [...own, ...(byTenant.get(tenant) ?? [])]);
  return { ...notices, byTenant };
}

function throttleNoticesFor(table: RoutingTable): UsageNotices['byTenant'] {
  return new Map(
    entriesOf(table, 'tenant').flatMap((tenant) => {
      const acting = (tenant.rules ?? []).filter(({ action, phase }) => action === 'Throttle' && phase === 'acting');
      const own = acting.flatMap((record) => overLimit(throttleMessage(record, tenant)));
      return own.length === 0 ? [] : [[tenant.name, own] as const];
    }),
  );
}

/** Returns the notices about one Service. A Service without an address has none, because its clients cannot reach it. */
export function noticesAbout({ uid, tenant, addresses }: ServiceView, notices: UsageNotices): readonly Notice[] {
  if (addresses.length === 0) return [];
  return [...(notices.byTenant.get(tenant ?? '') ?? []), ...(notices.byService.get(uid) ?? [])];
}

/** Returns the view with the notices added to its Degraded condition, whose reason becomes the most severe reason. */
export function withNotices(view: ServiceView, notices: UsageNotices): ServiceView {
  return noticesAbout(view, notices).reduce(withDegradedReason, view);
}

interface LimitedService {
  readonly service: Pick<ServiceEntry, 'settings'>;
  /** The tenant of the Service, if any. `ambiguous`: several policies claim the tenant's name, so its limits are not known. */
  readonly tenant: Pick<TenantEntry, 'policy' | 'limits'> | 'ambiguous' | undefined;
}

/** Returns a message with the limits that may have refused the clients, and the accepted and refused clients of one minute. */
export function limitRefusalMessage(refusals: LimitRefusals, limited: LimitedService): string {
  const { minute, reason, refused, accepted } = refusals;
  const [what, doLess] =
    reason === 'too-many-requests'
      ? ['requests', 'let clients send fewer requests']
      : ['connections', 'let clients open fewer connections'];
  const limits = limitsBehind(refusals, limited);
  const limitText = limits.length === 0 ? textWithoutLimits(reason, limited) : limits.join(' and ');
  return `limits refuse clients (${reason}): in the minute ${periodsOf(minute).minute}Z, ${refused} ${what} were refused and ${accepted} accepted; the limit is ${limitText}; ${doLess}, or ask for a higher limit`;
}

function textWithoutLimits(reason: LimitRefusals['reason'], { tenant }: LimitedService): string {
  if (tenant === 'ambiguous' && reason !== 'client-limit')
    return 'not shown, because several policies claim the tenant';
  // Without a limit of its own, a tenant may still begin only so many UDP flows per second.
  return reason === 'rate-limit' ? 'no longer set, or the built-in limit of UDP flows' : 'no longer set';
}

/** Returns the limits that refuse clients for a reason, as far as they are set, and what is used of them. */
function limitsBehind({ reason, used }: LimitRefusals, { service, tenant }: LimitedService): string[] {
  const ofService = service.settings?.limits;
  const text = (limit: number | null | undefined, name: string, use = usedText(reason, used?.service)): string[] =>
    limit === undefined || limit === null ? [] : [`${name} ${limit}${use}`];
  const known = tenant === 'ambiguous' ? undefined : tenant;
  const inPolicy = (name: 'connections' | 'newConnectionsPerSecond' | 'requestsPerSecond'): string[] =>
    text(known?.limits[name], name, ` in ${policyText(known?.policy ?? null)}${usedText(reason, used?.tenant)}`);
  switch (reason) {
    case 'connection-limit':
      return [...inPolicy('connections'), ...text(ofService?.connections, `${ANNOTATION_PREFIX}max-connections`)];
    case 'client-limit':
      return [
        ...text(ofService?.connectionsPerClient, `${ANNOTATION_PREFIX}max-connections-per-client`),
        ...text(
          ofService?.newConnectionsPerSecondPerClient,
          `${ANNOTATION_PREFIX}new-connections-per-second-per-client`,
        ),
      ];
    case 'rate-limit':
      return [
        ...inPolicy('newConnectionsPerSecond'),
        ...text(ofService?.newConnectionsPerSecond, `${ANNOTATION_PREFIX}new-connections-per-second`),
      ];
    case 'too-many-requests':
      return [
        ...inPolicy('requestsPerSecond'),
        ...text(ofService?.requestsPerSecond, `${ANNOTATION_PREFIX}requests-per-second`),
      ];
  }
}

/** Returns ` (5 open)`, ` (180 connections/s used)` or ` (180 requests/s used)`; nothing if the use is unknown. */
function usedText(reason: LimitReason, used: number | undefined): string {
  if (used === undefined) return '';
  switch (reason) {
    case 'connection-limit':
      return ` (${used} open)`;
    case 'rate-limit':
      return ` (${metricText('newConnectionsPerSecond', used)} used)`;
    case 'too-many-requests':
      return ` (${metricText('requestsPerSecond', used)} used)`;
    case 'client-limit':
      return '';
  }
}
