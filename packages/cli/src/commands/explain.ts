import {
  type AccessLogSettings,
  certificateSecretsOf,
  formatDuration,
  type HealthCheckSettings,
  healthCheckName,
  type ServiceLimits,
  type TlsTermination,
} from '@weir/model';
import type { Command } from 'commander';
import type { ServiceExplanation } from '../client/responses.ts';
import { clientFor, type ServerOptions, serverOption } from '../client/server-options.ts';
import { parseServiceName } from '../client/target.ts';
import { type CommandContext, EXIT_OK, EXIT_PROBLEM } from '../command-context.ts';
import {
  bitRateText,
  bytesText,
  codeClassesText,
  countText,
  joinList,
  MAX_LISTED_ITEMS,
  pluralize,
  refusalsText,
} from '../output/amounts.ts';
import { colourizeFor, serviceStateText, toSingleLine } from '../output/ansi.ts';
import { type OutputFormat, outputOption, printResult } from '../output/format.ts';
import { suspensionText } from '../output/suspension-text.ts';
import { tableText } from '../output/table.ts';

const EXAMPLES = `
Examples:
  weir explain shop/web                  state and reason, ports, endpoints, settings, limits and traffic
  weir explain shop/web -o yaml

The exit code is 1 unless the Service is programmed.`;

export function addExplain(program: Command, { terminal, finish }: CommandContext): void {
  program
    .command('explain')
    .description('show the state of one Service, the reason for it, and everything that affects it')
    .argument('<namespace/service>', 'the Service to show')
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

/** Returns the text of `weir explain`: the state of the Service first, then the reasons for that state. */
export function explanationText(service: ServiceExplanation, colour: boolean): string {
  const paint = colourizeFor(colour);
  const { namespace, name, tenant, policy, message, reason } = service;
  const policyText = policy === null ? 'the default policy' : `TenantPolicy ${policy}`;
  const lines = [
    `${paint('bold', `Service ${namespace}/${name}`)}: ${serviceStateText(paint, service)} (${reason})`,
    `  ${toSingleLine(message)}`,
    tenant === null ? '  tenant unknown (TenantConflict)' : `  tenant ${tenant}, ${policyText}`,
    ...section('Cut off by', service.suspensions.map(suspensionText)),
    ...section('Conditions', conditionLines(service)),
    ...section(
      'Port errors',
      service.portErrors.map(({ reason, message }) => `${reason}: ${message}`),
    ),
    ...section('Ports', portLines(service)),
    ...section('Endpoints', endpointLines(service)),
    ...section('Unhealthy endpoints', unhealthyLines(service)),
    ...section('Settings', settingLines(service)),
    ...section('Tenant limits', limitLines(service)),
    ...section('Service limits', trafficLimitLines(service.settings?.limits ?? {})),
    ...section('Traffic', trafficLines(service)),
    ...section('Refused clients', refusalLines(service)),
  ];
  return `${lines.join('\n')}\n`;
}

function section(title: string, lines: readonly string[]): string[] {
  return lines.length === 0 ? [] : ['', title, ...lines.map((line) => `  ${toSingleLine(line)}`)];
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
      { title: 'BOUND', value: (port) => (port.bound ? 'yes' : 'not yet') },
      { title: 'LISTENING', value: (port) => (port.listening ? 'yes' : 'no') },
      { title: 'ERROR', value: (port) => port.error ?? '-' },
    ],
    ports,
  )
    .trimEnd()
    .split('\n');
}

function endpointLines({ endpointList }: ServiceExplanation): string[] {
  return endpointList.map(({ port, protocol, ready, terminating = [], unready }) => {
    const terminatingText =
      terminating.length > 0 ? `; ${terminating.length} in use while terminating${endpointListText(terminating)}` : '';
    const unreadyText = unready > 0 ? `; ${unready} not ready` : '';
    return `${port}/${protocol}: ${ready.length} ready${endpointListText(ready)}${terminatingText}${unreadyText}`;
  });
}

/** Returns text such as ` (10.0.0.1:8080, 10.0.0.2:8080)`, or an empty text if there are no endpoints. */
function endpointListText(endpoints: readonly { readonly address: string; readonly port: number }[]): string {
  return endpoints.length > 0 ? ` (${joinList(endpoints.map(({ address, port }) => `${address}:${port}`))})` : '';
}

function unhealthyLines({ unhealthyEndpoints }: ServiceExplanation): string[] {
  const lines = unhealthyEndpoints.map(({ node, protocol, port, endpoint, why, used }) => {
    const consequence = used ? 'still used, because too few endpoints are healthy' : 'not used';
    return `${endpoint.address}:${endpoint.port} for ${port}/${protocol}, reported by ${node}: ${why}; ${consequence}`;
  });
  const more = lines.length - MAX_LISTED_ITEMS;
  return more > 0 ? [...lines.slice(0, MAX_LISTED_ITEMS), `and ${more} more`] : lines;
}

function healthCheckLines(check: HealthCheckSettings): string[] {
  if (check.kind === 'off') return [];
  const { intervalMs, timeoutMs, healthyThreshold, unhealthyThreshold, drainTimeoutMs } = check;
  const target = check.kind === 'http' ? check.path : check.grpcService;
  const request =
    target === undefined || target === '' ? healthCheckName(check) : `${healthCheckName(check)} ${target}`;
  return [
    `health-check ${request} every ${formatDuration(intervalMs)}, timeout ${formatDuration(timeoutMs)}; unhealthy after ${pluralize(unhealthyThreshold, 'failed check')}, healthy after ${pluralize(healthyThreshold, 'passed check')}`,
    ...(drainTimeoutMs === undefined
      ? []
      : [
          `health-check-drain-timeout ${formatDuration(drainTimeoutMs)}: connections to an unhealthy endpoint are reset after this time, if another endpoint works`,
        ]),
  ];
}

function settingLines({ settings }: ServiceExplanation): string[] {
  if (settings === null) return ['no settings of the Service have been accepted yet, so the Service is not served'];
  const { algorithm, connectTimeoutMs, idleTimeoutMs, drainTimeoutMs, affinity, healthCheck } = settings;
  const { sourceRanges, hosts, pathPrefix, stripPrefix, tls, tlsPassthrough, proxyProtocol } = settings;
  const { requestTimeoutMs, maxBodyBytes, stickyCookie, errorPages, accessLog } = settings;
  return [
    `algorithm ${algorithm}`,
    `connect-timeout ${formatDuration(connectTimeoutMs)}, idle-timeout ${formatDuration(idleTimeoutMs)}, drain-timeout ${formatDuration(drainTimeoutMs)}`,
    ...healthCheckLines(healthCheck),
    `clients from ${sourceRanges.length === 0 ? 'any address' : joinList(sourceRanges)}`,
    ...(hosts.length > 0 ? [`hosts ${joinList(hosts)}`] : []),
    ...(pathPrefix === undefined
      ? []
      : [`path prefix ${pathPrefix}${stripPrefix === true ? ', which the endpoints do not get' : ''}`]),
    ...(requestTimeoutMs === undefined ? [] : [`request-timeout ${formatDuration(requestTimeoutMs)}`]),
    ...(maxBodyBytes === undefined ? [] : [`bodies of requests have at most ${bytesText(maxBodyBytes)}`]),
    ...(stickyCookie === undefined ? [] : [`cookie ${stickyCookie} binds each client to an endpoint`]),
    ...(errorPages === undefined ? [] : [`error pages of ConfigMap ${errorPages}`]),
    ...(tlsPassthrough
      ? ['TLS passthrough: connections are routed by the server name that the client requests, and are not decrypted']
      : []),
    ...(tls === undefined ? [] : tlsLines(tls)),
    ...(proxyProtocol === null
      ? []
      : [`endpoints receive the client's address in a header of the PROXY protocol ${proxyProtocol}`]),
    ...(affinity.kind === 'client-ip'
      ? [`connections of a client go to the same endpoint for ${formatDuration(affinity.timeoutMs)}`]
      : []),
    ...(accessLog === undefined ? [] : [accessLogLine(accessLog, settings)]),
  ];
}

function accessLogLine(
  { requestsPerMillion, hasQuery }: AccessLogSettings,
  { httpPorts }: { readonly httpPorts?: readonly number[] },
): string {
  const share = requestsPerMillion === 1_000_000 ? 'all' : `${requestsPerMillion / 10_000}% of the`;
  if (httpPorts === undefined) return `access log of ${share} connections`;
  return `access log of ${share} requests, ${hasQuery === true ? 'with' : 'without'} query strings`;
}

function tlsLines(tls: TlsTermination): string[] {
  const { ports, clientCaSecret, httpsRedirectPort, hstsMaxAgeSeconds, backend } = tls;
  const secrets = certificateSecretsOf(tls);
  const certificates = secrets.length === 1 ? 'certificate of Secret' : 'certificates of Secrets';
  return [
    `TLS terminates here at ${ports.map(({ port }) => `${port}/TCP`).join(', ')}, with the ${certificates} ${joinList(secrets)}`,
    ...(clientCaSecret === null ? [] : [`clients must present a certificate of a CA in Secret ${clientCaSecret}`]),
    ...(backend === undefined
      ? []
      : [
          `requests at ${backend.ports.map((port) => `${port}/TCP`).join(', ')} are encrypted again; endpoints must present a certificate for ${backend.serverName} of a CA in Secret ${backend.caSecret}`,
          ...(backend.certificateSecret === undefined
            ? []
            : [`endpoints get the certificate of Secret ${backend.certificateSecret}`]),
        ]),
    ...(httpsRedirectPort === undefined
      ? []
      : [`HTTP requests at port 80 are redirected to HTTPS at ${httpsRedirectPort}`]),
    ...(hstsMaxAgeSeconds === undefined
      ? []
      : [`browsers are told to use only HTTPS for ${countText(hstsMaxAgeSeconds)} seconds (HSTS)`]),
  ];
}

const UNKNOWN_WHILE_STORE_UNREACHABLE = 'unknown while the store is unreachable';

function limitLines({ limits, used }: ServiceExplanation): string[] {
  const ofLimit = (limit: number | undefined, text: (amount: number) => string): string =>
    limit === undefined ? ' (no limit)' : ` of ${text(limit)}`;
  return [
    `services ${used.services}${ofLimit(limits.services, countText)}`,
    `ports ${used.ports}${ofLimit(limits.ports, countText)}`,
    `traffic this month ${used.trafficThisMonth === null ? UNKNOWN_WHILE_STORE_UNREACHABLE : bytesText(used.trafficThisMonth)}${ofLimit(limits.trafficPerMonth, bytesText)}`,
    ...trafficLimitLines(limits),
  ];
}

type TrafficLimits = { readonly [limit in keyof ServiceLimits]?: number | null };

/** Returns one line per limit of the traffic of a tenant or Service, and says whether the proxies keep the limit together. */
function trafficLimitLines(limits: TrafficLimits): string[] {
  const line = (limit: number | null | undefined, text: (limit: number) => string): string[] =>
    limit === undefined || limit === null ? [] : [`${text(limit)} on all proxies together`];
  const clientLine = (limit: number | null | undefined, text: (limit: number) => string): string[] =>
    limit === undefined || limit === null ? [] : [`${text(limit)} on each proxy`];
  return [
    ...line(limits.connections, (limit) => `at most ${pluralize(limit, 'connection')}`),
    ...clientLine(limits.connectionsPerClient, (limit) => `at most ${pluralize(limit, 'connection')} per client`),
    ...line(limits.newConnectionsPerSecond, (limit) => `at most ${pluralize(limit, 'new connection')} per second`),
    ...clientLine(
      limits.newConnectionsPerSecondPerClient,
      (limit) => `at most ${pluralize(limit, 'new connection')} per second and client`,
    ),
    ...line(limits.requestsPerSecond, (limit) => `at most ${pluralize(limit, 'request')} per second`),
    ...line(limits.inBitsPerSecond, (limit) => `at most ${bitRateText(limit)} in`),
    ...line(limits.outBitsPerSecond, (limit) => `at most ${bitRateText(limit)} out`),
  ];
}

function trafficLines({ month, rate }: ServiceExplanation): string[] {
  const monthText =
    month === null
      ? UNKNOWN_WHILE_STORE_UNREACHABLE
      : `${bytesText(month.receivedBytes)} in, ${bytesText(month.sentBytes)} out, ${pluralize(month.connections, 'connection')}, ${pluralize(month.requests, 'request')}`;
  const classes = month?.requestsByCodeClass;
  return [
    `this month: ${monthText}`,
    ...(classes === undefined ? [] : [`requests by code class: ${codeClassesText(classes)}`]),
    `now: ${bitRateText(rate.inBitsPerSecond)} in, ${bitRateText(rate.outBitsPerSecond)} out (\`weir top\` for live figures)`,
  ];
}

/** Returns no lines if no client was refused this month. */
function refusalLines({ month, rate, refusedToday }: ServiceExplanation): string[] {
  if (month?.refused === undefined) return [];
  return [
    `now, per second: ${refusalsText(rate.refusedPerSecond ?? {})}`,
    ...(refusedToday === null ? [] : [`today (UTC): ${refusalsText(refusedToday)}`]),
    `this month: ${refusalsText(month.refused)}`,
  ];
}
