import {
  formatDuration,
  type HealthCheck,
  healthCheckName,
  type ServiceLimits,
  type TlsTermination,
} from '@weir/model';
import type { Command } from 'commander';
import type { ServiceExplanation } from '../client/responses.ts';
import { clientFor, type ServerOptions, serverOption } from '../client/server-options.ts';
import { parseServiceName } from '../client/target.ts';
import { type CommandContext, EXIT_OK, EXIT_PROBLEM } from '../command-context.ts';
import { bitRateText, bytesText, countText } from '../output/amounts.ts';
import { colourizeFor, stateText, toSingleLine } from '../output/ansi.ts';
import { type OutputFormat, outputOption, printResult } from '../output/format.ts';
import { tableText } from '../output/table.ts';

const EXAMPLES = `
Examples:
  weir explain shop/web                  why it is pending, where it is bound, its endpoints, its limits
  weir explain shop/web -o yaml

Exit code 1 unless the Service is programmed.`;

export function addExplain(program: Command, { terminal, finish }: CommandContext): void {
  program
    .command('explain')
    .description('why one Service is as it is')
    .argument('<namespace/service>', 'which Service')
    .addOption(outputOption())
    .addOption(serverOption())
    .addHelpText('after', EXAMPLES)
    .action(async (text: string, options: ServerOptions & { output: OutputFormat }) => {
      const { namespace, name } = parseServiceName(text);
      const path = `/api/v1/services/${encodeURIComponent(namespace)}/${encodeURIComponent(name)}`;
      const data = await clientFor(terminal, options).get<ServiceExplanation>(path);
      printResult(terminal, options.output, { data, table: () => explanationText(data, terminal.colour) });
      finish(data.state === 'Programmed' ? EXIT_OK : EXIT_PROBLEM);
    });
}

/** A Service from the verdict down to the figures. */
export function explanationText(service: ServiceExplanation, colour: boolean): string {
  const paint = colourizeFor(colour);
  const { namespace, name, tenant, policy, state, message, reason } = service;
  const by = policy === null ? 'the default policy' : `TenantPolicy ${policy}`;
  const lines = [
    `${paint('bold', `Service ${namespace}/${name}`)}: ${stateText(paint, state)} (${reason})`,
    `  ${toSingleLine(message)}`,
    tenant === null ? '  tenant in dispute' : `  tenant ${tenant}, ${by}`,
    ...section(
      'Cut off by',
      service.suspensions.map((item) => suspensionText(item)),
    ),
    ...section('Conditions', conditionLines(service)),
    ...section(
      'Problems of ports',
      service.portErrors.map(({ reason, message }) => `${reason}: ${message}`),
    ),
    ...section('Bound at', portLines(service)),
    ...section('Endpoints', endpointLines(service)),
    ...section('Endpoints that do not work', unhealthyLines(service)),
    ...section('Settings', settingLines(service)),
    ...section('Limits of the tenant', limitLines(service)),
    ...section('Limits of the Service', perProxyLimitLines(service.settings?.limits ?? {})),
    ...section('Traffic', trafficLines(service)),
  ];
  return `${lines.join('\n')}\n`;
}

function section(title: string, lines: readonly string[]): string[] {
  return lines.length === 0 ? [] : ['', title, ...lines.map((line) => `  ${toSingleLine(line)}`)];
}

function suspensionText({ name, message, until, origin }: ServiceExplanation['suspensions'][number]): string {
  const from = origin.kind === 'file' ? `, from ${origin.path}` : '';
  const end = until === null ? 'until resumed' : `until ${until}`;
  return `Suspension ${name}${from}, ${end}${message === '' ? '' : `: ${message}`}`;
}

function conditionLines({ conditions }: ServiceExplanation): string[] {
  return conditions.map(({ type, status, reason, message }) => `${type} ${status} (${reason}): ${message}`);
}

function portLines({ ports }: ServiceExplanation): string[] {
  if (ports.length === 0) return [];
  return tableText(
    [
      { title: 'NODE', value: (port) => port.node },
      { title: 'ADDRESS', value: (port) => port.address },
      { title: 'PORT', value: (port) => `${port.port}/${port.protocol}` },
      { title: 'HELD', value: (port) => (port.bound ? 'yes' : 'not yet') },
      { title: 'LISTENING', value: (port) => (port.listening ? 'yes' : 'no') },
      { title: 'ERROR', value: (port) => port.error ?? '-' },
    ],
    ports,
  )
    .trimEnd()
    .split('\n');
}

/** Of a list that may be thousands long; the whole of it is in `-o json`. */
const MAX_LISTED_ITEMS = 10;

function endpointLines({ endpointList }: ServiceExplanation): string[] {
  return endpointList.map(({ port, protocol, ready, terminating = [], unready }) => {
    const leaving =
      terminating.length > 0 ? `; ${terminating.length} in use while terminating${endpointListText(terminating)}` : '';
    const waiting = unready > 0 ? `; ${unready} not ready` : '';
    return `${port}/${protocol}: ${ready.length} ready${endpointListText(ready)}${leaving}${waiting}`;
  });
}

/** ` (10.0.0.1:8080)`; nothing of none. */
function endpointListText(endpoints: readonly { readonly address: string; readonly port: number }[]): string {
  return endpoints.length > 0 ? ` (${joinList(endpoints.map(({ address, port }) => `${address}:${port}`))})` : '';
}

function joinList(items: readonly string[]): string {
  const more = items.length - MAX_LISTED_ITEMS;
  return more > 0 ? `${items.slice(0, MAX_LISTED_ITEMS).join(', ')} and ${more} more` : items.join(', ');
}

function unhealthyLines({ unhealthyEndpoints }: ServiceExplanation): string[] {
  const lines = unhealthyEndpoints.map(({ node, protocol, port, endpoint, why, used }) => {
    const fate = used ? 'used all the same, as too few others work' : 'not used';
    return `${endpoint.address}:${endpoint.port} for ${port}/${protocol}, seen by ${node}: ${why}; ${fate}`;
  });
  const more = lines.length - MAX_LISTED_ITEMS;
  return more > 0 ? [...lines.slice(0, MAX_LISTED_ITEMS), `and ${more} more`] : lines;
}

function healthCheckLines(check: HealthCheck): string[] {
  if (check.kind === 'off') return [];
  const { intervalMs, timeoutMs, healthyThreshold, unhealthyThreshold, drainTimeoutMs } = check;
  const what = check.kind === 'http' ? `${healthCheckName(check)} ${check.path}` : check.kind;
  return [
    `health-check ${what} each ${formatDuration(intervalMs)} for at most ${formatDuration(timeoutMs)}; out after ${unhealthyThreshold} bad, back after ${healthyThreshold} good`,
    ...(drainTimeoutMs === undefined
      ? []
      : [
          `health-check-drain-timeout ${formatDuration(drainTimeoutMs)}: connections to one that is out are reset then`,
        ]),
  ];
}

function settingLines({ settings }: ServiceExplanation): string[] {
  if (settings === null) return ['none were ever accepted, so nothing is served'];
  const { algorithm, connectTimeoutMs, idleTimeoutMs, drainTimeoutMs, affinity, healthCheck } = settings;
  const { sourceRanges, hosts, tls, tlsPassthrough, proxyProtocol } = settings;
  return [
    `algorithm ${algorithm}`,
    `connect-timeout ${formatDuration(connectTimeoutMs)}, idle-timeout ${formatDuration(idleTimeoutMs)}, drain-timeout ${formatDuration(drainTimeoutMs)}`,
    ...healthCheckLines(healthCheck),
    `clients from ${sourceRanges.length === 0 ? 'everywhere' : joinList(sourceRanges)}`,
    ...(hosts.length > 0 ? [`clients that ask for ${joinList(hosts)}`] : []),
    ...(tlsPassthrough ? ['TLS is passed on as it comes, by the server name that the client asks for'] : []),
    ...(tls === undefined ? [] : tlsLines(tls)),
    ...(proxyProtocol === null ? [] : [`endpoints are told the client by the PROXY protocol ${proxyProtocol}`]),
    ...(affinity.kind === 'client-ip'
      ? [`the same client meets the same endpoint for ${formatDuration(affinity.timeoutMs)}`]
      : []),
  ];
}

function tlsLines({ secret, ports, clientCaSecret }: TlsTermination): string[] {
  return [
    `TLS ends here at ${ports.map(({ port }) => `${port}/TCP`).join(', ')}, with the certificate of Secret ${secret}`,
    ...(clientCaSecret === null ? [] : [`clients show a certificate of a CA in Secret ${clientCaSecret}`]),
  ];
}

const UNKNOWN_WHILE_STORE_AWAY = 'not known while the store is away';

function limitLines({ limits, used }: ServiceExplanation): string[] {
  const of = (limit: number | undefined, text: (amount: number) => string): string =>
    limit === undefined ? ', unlimited' : ` of ${text(limit)}`;
  return [
    `services ${used.services}${of(limits.services, countText)}`,
    `ports ${used.ports}${of(limits.ports, countText)}`,
    `traffic this month ${used.trafficThisMonth === null ? UNKNOWN_WHILE_STORE_AWAY : bytesText(used.trafficThisMonth)}${of(limits.trafficPerMonth, bytesText)}`,
    ...perProxyLimitLines(limits),
  ];
}

type PerProxyLimits = { readonly [limit in keyof ServiceLimits | 'newConnectionsPerSecond']?: number | null };

/** What holds on each proxy, of a tenant or a Service; what is not limited is not said. */
function perProxyLimitLines(limits: PerProxyLimits): string[] {
  const line = (limit: number | null | undefined, text: (limit: number) => string): string[] =>
    limit === undefined || limit === null ? [] : [`${text(limit)} on each proxy`];
  return [
    ...line(limits.connections, (most) => `at most ${countText(most)} connections`),
    ...line(limits.connectionsPerClient, (most) => `at most ${countText(most)} connections per client`),
    ...line(limits.newConnectionsPerSecond, (most) => `at most ${countText(most)} new connections per second`),
    ...line(limits.inBitsPerSecond, (most) => `at most ${bitRateText(most)} in`),
    ...line(limits.outBitsPerSecond, (most) => `at most ${bitRateText(most)} out`),
  ];
}

function trafficLines({ month, rate }: ServiceExplanation): string[] {
  const sum =
    month === null
      ? UNKNOWN_WHILE_STORE_AWAY
      : `${bytesText(month.receivedBytes)} in, ${bytesText(month.sentBytes)} out, ${countText(month.connections)} connections, ${countText(month.requests)} requests`;
  return [
    `this month: ${sum}`,
    `now: ${bitRateText(rate.inBitsPerSecond)} in, ${bitRateText(rate.outBitsPerSecond)} out (\`weir top\` for live figures)`,
  ];
}
