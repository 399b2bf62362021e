import type { FleetProblem } from '@weir/console';
import type { ProxyView, ServiceView } from '@weir/model';
import { Argument, type Command } from 'commander';
import type { ItemList, TenantItem } from '../client/responses.ts';
import { clientFor, type ServerOptions, serverOption } from '../client/server-options.ts';
import type { CommandContext } from '../command-context.ts';
import { EXIT_OK, EXIT_PROBLEM } from '../command-context.ts';
import { bytesText, countText } from '../output/amounts.ts';
import { type Colourize, colourizeFor, stateText } from '../output/ansi.ts';
import { type OutputFormat, outputOption, printResult } from '../output/format.ts';
import { problemsText } from '../output/problem-text.ts';
import { type Column, tableText } from '../output/table.ts';

const KINDS = ['tenants', 'services', 'proxies', 'problems'] as const;
type Kind = (typeof KINDS)[number];

const EXAMPLES = `
Examples:
  weir get services                      every Service, its state and why
  weir get services -o json | jq '.items[] | select(.state != "Programmed")'
  weir get problems                      exit code 1 when there is an error among them`;

export function addGet(program: Command, { terminal, finish }: CommandContext): void {
  program
    .command('get')
    .description('what the fleet knows')
    .addArgument(new Argument('<kind>', 'what to show').choices(KINDS))
    .addOption(outputOption())
    .addOption(serverOption())
    .addHelpText('after', EXAMPLES)
    .action(async (kind: Kind, options: ServerOptions & { output: OutputFormat }) => {
      const data = await clientFor(terminal, options).get<ItemList<unknown>>(`/api/v1/${kind}`);
      const text = (): string => textFor(kind, data.items, colourizeFor(terminal.colour));
      printResult(terminal, options.output, { data, table: text });
      if (kind === 'problems') finish(hasError(data.items as readonly FleetProblem[]) ? EXIT_PROBLEM : EXIT_OK);
    });
}

function hasError(problems: readonly FleetProblem[]): boolean {
  return problems.some((problem) => problem.severity === 'error');
}

function textFor(kind: Kind, items: readonly unknown[], paint: Colourize): string {
  switch (kind) {
    case 'tenants':
      return tableText(TENANT_COLUMNS(paint), items as readonly TenantItem[]);
    case 'services':
      return tableText(SERVICE_COLUMNS(paint), items as readonly ServiceView[]);
    case 'proxies':
      return tableText(PROXY_COLUMNS(paint), items as readonly ProxyView[]);
    case 'problems':
      return problemsText(items as readonly FleetProblem[], paint) || 'No problem is known.\n';
  }
}

const TENANT_COLUMNS = (paint: Colourize): readonly Column<TenantItem>[] => [
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

const SERVICE_COLUMNS = (paint: Colourize): readonly Column<ServiceView>[] => [
  { title: 'NAMESPACE', value: (service) => service.namespace },
  { title: 'NAME', value: (service) => service.name },
  { title: 'TENANT', value: (service) => service.tenant ?? '-' },
  { title: 'STATE', value: (service) => stateText(paint, service.state) },
  { title: 'ADDRESSES', value: (service) => service.addresses.join(',') || '-' },
  { title: 'PORTS', value: portsText },
  { title: 'ENDPOINTS', value: ({ endpoints }) => `${endpoints.ready}/${endpoints.total}`, align: 'right' },
  { title: 'REASON', value: reasonText },
];

const PROXY_COLUMNS = (paint: Colourize): readonly Column<ProxyView>[] => [
  { title: 'NODE', value: (proxy) => proxy.node },
  { title: 'LIFE', value: (proxy) => (proxy.life === null ? '-' : String(proxy.life)), align: 'right' },
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
  { title: 'REASON', value: (proxy) => proxy.message ?? '-' },
];

function portsText({ ports, portErrors }: ServiceView): string {
  const open = ports.map(({ port, protocol }) => `${port}/${protocol}`);
  const refused = portErrors.map(({ port, protocol, reason }) => `${port}/${protocol} (${reason})`);
  return [...new Set([...open, ...refused])].join(',') || '-';
}

/** A Service that serves says only what is not as it should be. */
function reasonText({ state, reason, message, conditions }: ServiceView): string {
  if (state !== 'Programmed') return `${reason}: ${message}`;
  const others = conditions.filter(
    ({ type, status }) => type === 'Degraded' || (type === 'Accepted' && status === 'False'),
  );
  return others.map((condition) => `${condition.reason}: ${condition.message}`).join('; ') || '-';
}

function usedOfLimit(used: number, limit: number | undefined): string {
  return limit === undefined ? String(used) : `${used}/${limit}`;
}
