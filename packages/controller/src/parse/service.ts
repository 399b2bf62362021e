import { isDeepStrictEqual } from 'node:util';
import type { ServiceObject, ServicePort } from '@weir/model';
import { INGRESS_FIELD, isAppliedBy, managedFieldsOf } from '../kubernetes/managed-fields.ts';
import type { Fields, TextFormat } from './fields.ts';
import { DNS_LABEL, IP_ADDRESS, PORT, parseTimestamp } from './fields.ts';
import { type ParseResult, parseObject, readNamespacedMeta, WEIR_PREFIX } from './parse-object.ts';

const TYPES = ['ClusterIP', 'NodePort', 'LoadBalancer', 'ExternalName'] as const;
/** The default and the maximum of `sessionAffinityConfig.clientIP.timeoutSeconds` in the API server. */
const DEFAULT_AFFINITY_SECONDS = 10_800;
const MAX_AFFINITY_SECONDS = 86_400;

export interface ServiceOptions {
  /** The field manager of this fleet. Status fields of other field managers are ignored. By default the status is ignored. */
  readonly statusManager?: string;
}

export function parseService(raw: unknown, { statusManager }: ServiceOptions = {}): ParseResult<ServiceObject> {
  return parseObject('Service', raw, (fields) => {
    const isOwn = (path: readonly string[]): boolean =>
      statusManager !== undefined && isAppliedBy(statusManager, managedFieldsOf(raw), path);
    const noProxySince = isOwn(PROGRAMMED_FIELD) ? readNoProxySince(fields) : undefined;
    const spec = fields.object('spec');
    const type = spec.oneOf('type', TYPES, 'ClusterIP');
    const selector = spec.textMap('selector');
    const clusterIPs = readClusterIPs(spec);
    return {
      ...readNamespacedMeta(fields, { name: DNS_LABEL }),
      type,
      loadBalancerClass: spec.text('loadBalancerClass'),
      ports: readPorts(spec, { required: type === 'LoadBalancer' }),
      hasSelector: Object.keys(selector).length > 0,
      ...(clusterIPs.length > 0 && { clusterIPs: Object.freeze(clusterIPs) }),
      clientIpAffinitySeconds: readAffinity(spec),
      sourceRanges: Object.freeze(spec.texts('loadBalancerSourceRanges')),
      externalTrafficPolicy: spec.oneOf('externalTrafficPolicy', ['Cluster', 'Local'], 'Cluster'),
      trafficDistribution: spec.text('trafficDistribution'),
      publishNotReadyAddresses: spec.boolean('publishNotReadyAddresses', false),
      ipFamilies: Object.freeze(spec.texts('ipFamilies', IP_FAMILY)),
      // Another controller may have left its addresses in the status, and clients may not reach Weir there.
      publishedIPs: Object.freeze(isOwn(INGRESS_FIELD) ? readPublishedIPs(fields) : []),
      ...(noProxySince !== undefined && { noProxySince }),
      deleting: fields.object('metadata').has('deletionTimestamp'),
    };
  });
}

/**
 * Returns the new version of a Service. Reuses the source ranges and annotations of the previous version if they are equal, so that 10,000
 * source ranges are not parsed again when only the status of the Service has changed.
 */
export function reuseUnchangedParts(service: ServiceObject, previous: ServiceObject): ServiceObject {
  return Object.freeze({
    ...service,
    sourceRanges: isDeepStrictEqual(service.sourceRanges, previous.sourceRanges)
      ? previous.sourceRanges
      : service.sourceRanges,
    annotations: isDeepStrictEqual(service.annotations, previous.annotations)
      ? previous.annotations
      : service.annotations,
  });
}

const IP_FAMILY: TextFormat = { allowed: 'IPv4, IPv6', matches: (text) => text === 'IPv4' || text === 'IPv6' };

/** Reads the cluster IPs. Ignores `None`, and text in files that is not an address. */
function readClusterIPs(spec: Fields): string[] {
  return spec.texts('clusterIPs').filter(IP_ADDRESS.matches);
}

function readPorts(spec: Fields, { required }: { readonly required: boolean }): readonly ServicePort[] {
  const items = spec.objects('ports');
  if (required && items.length === 0) spec.noteMissing('ports', 'a list of at least one port');
  const names = new Set<string>();
  const numbers = new Set<string>();
  const ports = items.map((item) => {
    const port = readPort(item);
    if (!item.has('name') && items.length > 1) item.noteMissing('name', 'a name for each port when there are several');
    if (port.name !== null && names.has(port.name)) item.noteInvalid('name', 'another name: two ports have this one');
    // A port with a wrong number is read as port 1, and must not count as a duplicate of another port.
    const number = item.raw('port') === port.port ? `${port.port}/${port.protocol}` : item.path;
    if (numbers.has(number)) item.noteInvalid('port', `another number: two ports are ${number}`);
    if (port.name !== null) names.add(port.name);
    numbers.add(number);
    return Object.freeze(port);
  });
  return Object.freeze(ports);
}

function readPort(item: Fields): ServicePort {
  const nodePort = item.integer('nodePort', { from: 0, to: PORT.to });
  checkTargetPort(item);
  return {
    name: item.text('name', DNS_LABEL),
    port: item.requiredInteger('port', PORT),
    protocol: item.oneOf('protocol', ['TCP', 'UDP', 'SCTP'], 'TCP'),
    appProtocol: item.text('appProtocol'),
    nodePort: nodePort === 0 ? null : nodePort,
  };
}

/** Notes a wrong target port as an API server would. Weir itself uses the resolved ports in the slices. */
function checkTargetPort(item: Fields): void {
  const value = item.raw('targetPort');
  if (value === null || (typeof value === 'string' && /^(?=.*[a-z])[a-z0-9-]{1,15}$/.test(value))) return;
  if (typeof value === 'string')
    item.noteInvalid('targetPort', 'a port number, or the name of a port (at most 15 characters)');
  else item.integer('targetPort', PORT);
}

function readAffinity(spec: Fields): number | null {
  const affinity = spec.oneOf('sessionAffinity', ['None', 'ClientIP'], 'None');
  const config = spec.object('sessionAffinityConfig').object('clientIP');
  const seconds = config.integer('timeoutSeconds', { from: 1, to: MAX_AFFINITY_SECONDS });
  return affinity === 'ClientIP' ? (seconds ?? DEFAULT_AFFINITY_SECONDS) : null;
}

function readPublishedIPs(fields: Fields): string[] {
  const ingress = fields.object('status').object('loadBalancer').objects('ingress');
  return ingress.flatMap((each) => each.text('ip', IP_ADDRESS) ?? []).sort();
}

const PROGRAMMED = `${WEIR_PREFIX}Programmed`;
const PROGRAMMED_FIELD = ['f:status', 'f:conditions', `k:{"type":"${PROGRAMMED}"}`];

/** Reads since when the status has shown that all proxies of the Service are silent. */
function readNoProxySince(fields: Fields): number | undefined {
  const condition = fields
    .object('status')
    .objects('conditions')
    .find((each) => each.text('type') === PROGRAMMED && each.text('reason') === 'NoProxy');
  return parseTimestamp(condition?.text('lastTransitionTime') ?? '');
}
