// The tables of `weir get`.
import type { FleetProblem, SuspensionItem } from '@weir/console';
import type { ProxyView, ServiceView } from '@weir/model';
import type { TenantItem } from '../client/responses.ts';
import { bytesText, countText } from './amounts.ts';
import { type Colourize, serviceStateText, stateText, toSingleLine } from './ansi.ts';
import { problemsText } from './problem-text.ts';
import { SUSPENSION_COLUMNS, suspensionText } from './suspension-text.ts';
import { type Column, rowsText, tableText } from './table.ts';

export type Kind = 'tenants' | 'services' | 'proxies' | 'problems' | 'suspensions';

/** An item of any kind. */
export type ListItem = { readonly name?: string; readonly node?: string } & (
  | TenantItem
  | ServiceView
  | ProxyView
  | FleetProblem
  | SuspensionItem
);

/** Returns the text that identifies an item among the items of its kind: `shop/web` for a Service. */
export function identityOf(kind: Kind, item: ListItem): string {
  switch (kind) {
    case 'tenants':
      return (item as TenantItem).name;
    case 'services': {
      const { namespace, name } = item as ServiceView;
      return `${namespace}/${name}`;
    }
    case 'proxies': {
      const { node, life } = item as ProxyView;
      return life === null ? node : `${node}/${life}`;
    }
    case 'problems': {
      const { code, subject } = item as FleetProblem;
      return `${code}/${subject}`;
    }
    case 'suspensions':
      return (item as SuspensionItem).name;
  }
}

/** Whether the item belongs to the namespace. A tenant belongs to each of its namespaces. */
export function inNamespace(kind: Kind, item: ListItem, namespace: string): boolean {
  switch (kind) {
    case 'tenants':
      return (item as TenantItem).namespaces.includes(namespace);
    case 'services':
      return (item as ServiceView).namespace === namespace;
    case 'problems':
      return (item as FleetProblem).subject.includes(` ${namespace}/`);
    case 'suspensions':
      return (item as SuspensionItem).target.namespace === namespace;
    case 'proxies':
      return false;
  }
}

export function hasError(items: readonly ListItem[]): boolean {
  return (items as readonly FleetProblem[]).some(({ severity }) => severity === 'error');
}

export interface ListTextOptions {
  readonly paint: Colourize;
  readonly isWide: boolean;
  /** Whether the first line contains the titles of the columns. */
  readonly hasTitles: boolean;
}

export function itemsText(kind: Kind, items: readonly ListItem[], options: ListTextOptions): string {
  const { paint, isWide, hasTitles } = options;
  const text = hasTitles ? tableText : rowsText;
  switch (kind) {
    case 'tenants':
      return tenantsText(items as readonly TenantItem[], options);
    case 'services':
      return text([...serviceColumns(paint), ...(isWide ? WIDE_SERVICE_COLUMNS : [])], items as readonly ServiceView[]);
    case 'proxies':
      return text([...proxyColumns(paint), ...(isWide ? WIDE_PROXY_COLUMNS : [])], items as readonly ProxyView[]);
    case 'problems':
      return problemsText(items as readonly FleetProblem[], paint) || 'No problems.\n';
    case 'suspensions':
      return items.length === 0 ? 'No Suspensions.\n' : text(SUSPENSION_COLUMNS, items as readonly SuspensionItem[]);
  }
}

/** Returns the table of tenants, and below it a line for each suspended tenant that says who suspended the tenant, when and why. */
function tenantsText(tenants: readonly TenantItem[], { paint, hasTitles }: ListTextOptions): string {
  const text = hasTitles ? tableText : rowsText;
  const lines = tenants.flatMap(({ name, suspension }) =>
    suspension === null ? [] : [`${name}: ${toSingleLine(suspensionText(suspension))}\n`],
  );
  return text(tenantColumns(paint), tenants) + (lines.length === 0 ? '' : `\n${lines.join('')}`);
}

function tenantColumns(paint: Colourize): readonly Column<TenantItem>[] {
  return [
    { title: 'TENANT', value: (tenant) => tenant.name },
    { title: 'STATE', value: (tenant) => (tenant.suspension === null ? '-' : stateText(paint, 'Suspended')) },
    { title: 'POLICY', value: (tenant) => tenant.policy ?? '-' },
    { title: 'SERVICES', value: ({ used, limits }) => usedOfLimit(used.services, limits.services), align: 'right' },
    { title: 'PORTS', value: ({ used, limits }) => usedOfLimit(used.ports, limits.ports), align: 'right' },
    { title: 'REFUSED', value: ({ services }) => String(services.Refused), align: 'right' },
    {
      title: 'THIS MONTH',
      value: ({ used, limits }) =>
        limits.trafficPerMonth === undefined
          ? bytesText(used.trafficThisMonth)
          : `${bytesText(used.trafficThisMonth)} of ${bytesText(limits.trafficPerMonth)}`,
      align: 'right',
    },
    { title: 'NAMESPACES', value: (tenant) => tenant.namespaces.join(',') || '-' },
  ];
}

function serviceColumns(paint: Colourize): readonly Column<ServiceView>[] {
  return [
    { title: 'NAMESPACE', value: (service) => service.namespace },
    { title: 'NAME', value: (service) => service.name },
    { title: 'TENANT', value: (service) => service.tenant ?? '-' },
    { title: 'STATE', value: (service) => serviceStateText(paint, service) },
    { title: 'ADDRESSES', value: (service) => service.addresses.join(',') || '-' },
    { title: 'PORTS', value: portsText },
    { title: 'ENDPOINTS', value: ({ endpoints }) => `${endpoints.ready}/${endpoints.total}`, align: 'right' },
    { title: 'REASON', value: reasonText },
  ];
}

function proxyColumns(paint: Colourize): readonly Column<ProxyView>[] {
  return [
    { title: 'NODE', value: (proxy) => proxy.node },
    { title: 'INCARNATION', value: (proxy) => (proxy.life === null ? '-' : String(proxy.life)), align: 'right' },
    { title: 'STATE', value: (proxy) => stateText(paint, proxy.state) },
    { title: 'ADDRESSES', value: (proxy) => proxy.addresses.join(',') || '-' },
    { title: 'LISTENING', value: ({ listeners }) => `${listeners.listening}/${listeners.bound}`, align: 'right' },
    { title: 'FAILED', value: ({ listeners }) => String(listeners.failed), align: 'right' },
    { title: 'CONNECTIONS', value: (proxy) => countText(proxy.connections), align: 'right' },
    {
      title: 'REVISION',
      value: (proxy) => (proxy.applied === null ? '-' : String(proxy.applied.revision)),
      align: 'right',
    },
    { title: 'WORKERS', value: (proxy) => String(proxy.workers), align: 'right' },
    { title: 'TRANSPORT', value: (proxy) => proxy.transport ?? '-' },
    { title: 'REASON', value: (proxy) => proxy.message ?? '-' },
  ];
}

const WIDE_SERVICE_COLUMNS: readonly Column<ServiceView>[] = [
  { title: 'NODES', value: ({ ports }) => [...new Set(ports.map(({ node }) => node))].join(',') || '-' },
  { title: 'UID', value: ({ uid }) => uid },
];

const WIDE_PROXY_COLUMNS: readonly Column<ProxyView>[] = [
  { title: 'VERSION', value: (proxy) => proxy.version ?? '-' },
  {
    title: 'STARTED',
    value: ({ startedAt }) => (startedAt === null ? '-' : new Date(startedAt).toISOString()),
  },
];

function portsText({ ports, portErrors }: ServiceView): string {
  const open = ports.map(({ port, protocol }) => `${port}/${protocol}`);
  const refused = portErrors.map(({ port, protocol, reason }) => `${port}/${protocol} (${reason})`);
  return [...new Set([...open, ...refused])].join(',') || '-';
}

/** Returns the text of the REASON column. For a programmed Service the text contains only conditions that report a problem. */
function reasonText({ state, reason, message, conditions }: ServiceView): string {
  if (state !== 'Programmed') return `${reason}: ${message}`;
  const unwanted = conditions.filter(
    ({ type, status }) => type === 'Degraded' || (type === 'Accepted' && status === 'False'),
  );
  return unwanted.map((condition) => `${condition.reason}: ${condition.message}`).join('; ') || '-';
}

function usedOfLimit(used: number, limit: number | undefined): string {
  return limit === undefined ? String(used) : `${used}/${limit}`;
}
