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
  weir get services                      every Service, its state and the reason
  weir get services -o json | jq '.items[] | select(.state != "Programmed")'
  weir get problems                      every problem of the fleet

The exit code of weir get problems is 1 if a problem of severity error exists.`;

export function addGet(program: Command, { terminal, finish }: CommandContext): void {
  program
    .command('get')
    .description('list tenants, Services, proxies or problems')
    .addArgument(new Argument('<kind>', 'what to list').choices(KINDS))
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
      return tableText(tenantColumns(paint), items as readonly TenantItem[]);
    case 'services':
      return tableText(serviceColumns(paint), items as readonly ServiceView[]);
    case 'proxies':
      return tableText(proxyColumns(paint), items as readonly ProxyView[]);
    case 'problems':
      return problemsText(items as readonly FleetProblem[], paint) || 'No problems.\n';
  }
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
    { title: 'STATE', value: (service) => stateText(paint, service.state) },
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
