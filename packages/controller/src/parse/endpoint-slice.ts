import type { Problem, SliceEndpoint, SliceObject, SlicePort } from '@weir/model';
import type { Fields, TextFormat } from './fields.ts';
import { DNS_LABEL, DNS_SUBDOMAIN, IPV4_ADDRESS, IPV6_ADDRESS, PORT, parseTimestamp } from './fields.ts';
import { type ParseResult, parseObject, readNamespacedMeta, subjectOfRaw } from './parse-object.ts';

export const SERVICE_NAME_LABEL = 'kubernetes.io/service-name';
const ADDRESS_TYPES = ['IPv4', 'IPv6', 'FQDN'] as const;

const ADDRESS_FORMATS: Record<(typeof ADDRESS_TYPES)[number], TextFormat> = {
  IPv4: IPV4_ADDRESS,
  IPv6: IPV6_ADDRESS,
  FQDN: DNS_SUBDOMAIN,
};

/**
 * Parses an EndpointSlice. If its labels name no Service, returns a warning and no object. Ignores zones that are too long for the value of
 * a label, because Kubernetes does not limit their length, and each port of a Service repeats them in the routing table.
 */
export function parseEndpointSlice(raw: unknown): ParseResult<SliceObject> {
  let longZones = 0;
  const readZone = (fields: Fields, name: string): string | null => {
    const zone = fields.text(name) || null;
    if (zone === null || zone.length <= MAX_ZONE_CHARACTERS) return zone;
    longZones += 1;
    return null;
  };
  const result = parseObject('EndpointSlice', raw, (fields) => {
    if (!fields.has('addressType')) fields.noteMissing('addressType', ADDRESS_TYPES.join(', '));
    const addressType = fields.oneOf('addressType', ADDRESS_TYPES, 'IPv4');
    return {
      ...readNamespacedMeta(fields, { name: DNS_SUBDOMAIN }),
      serviceName: fields.object('metadata').textMap('labels')[SERVICE_NAME_LABEL] ?? '',
      addressType,
      ports: readPorts(fields),
      endpoints: Object.freeze(
        fields.objects('endpoints').map((item) => readEndpoint(item, ADDRESS_FORMATS[addressType], readZone)),
      ),
    };
  });
  if (result.object?.serviceName === '') return { object: undefined, problems: [missingServiceProblem(raw)] };
  if (result.object === undefined || longZones === 0) return result;
  return { object: result.object, problems: [longZonesProblem(raw, longZones)] };
}

/** The greatest length of a label's value, and therefore of the label topology.kubernetes.io/zone. */
const MAX_ZONE_CHARACTERS = 63;

function longZonesProblem(raw: unknown, count: number): Problem {
  return Object.freeze({
    code: 'InvalidObject',
    subject: subjectOfRaw('EndpointSlice', raw),
    severity: 'warning',
    heals: false,
    message: `zones of endpoints and hints with more than ${MAX_ZONE_CHARACTERS} characters are ignored (${count} in this slice), because no node can have such a zone; use the zones of the nodes (label topology.kubernetes.io/zone)`,
  });
}

function missingServiceProblem(raw: unknown): Problem {
  return Object.freeze({
    code: 'InvalidObject',
    subject: subjectOfRaw('EndpointSlice', raw),
    severity: 'warning',
    heals: false,
    message: `metadata.labels["${SERVICE_NAME_LABEL}"] is missing, so this slice belongs to no Service; set the label to the name of the Service`,
  });
}

function readPorts(fields: Fields): readonly SlicePort[] {
  const names = new Set<string>();
  const ports = fields.objects('ports').map((item) => {
    const name = item.text('name', PORT_NAME) || null;
    if (names.has(name ?? '')) item.noteInvalid('name', 'another name: two ports have this one');
    names.add(name ?? '');
    const port = item.integer('port', PORT);
    return Object.freeze({ name, port, protocol: item.oneOf('protocol', ['TCP', 'UDP', 'SCTP'], 'TCP') });
  });
  return Object.freeze(ports);
}

/**
 * The format of a port's name. An empty name is allowed, because the API server writes one if the Service has a single port without a
 * name.
 */
const PORT_NAME: TextFormat = { allowed: DNS_LABEL.allowed, matches: (text) => text === '' || DNS_LABEL.matches(text) };

function readEndpoint(
  item: Fields,
  format: TextFormat,
  readZone: (fields: Fields, name: string) => string | null,
): SliceEndpoint {
  const addresses = item.texts('addresses', format);
  if (!item.has('addresses')) item.noteMissing('addresses', 'a list of addresses');
  const conditions = item.object('conditions');
  const hints = item.object('hints').objects('forZones');
  const hintedZones = [...new Set(hints.flatMap((hint) => readZone(hint, 'name') ?? []))];
  return Object.freeze({
    addresses: Object.freeze(addresses),
    zone: readZone(item, 'zone'),
    ...(hintedZones.length > 0 && { hintedZones: Object.freeze(hintedZones) }),
    ready: conditions.boolean('ready', true),
    serving: conditions.boolean('serving', conditions.boolean('ready', true)),
    terminating: conditions.boolean('terminating', false),
  });
}

const CHANGE_TRIGGER_ANNOTATION = 'endpoints.kubernetes.io/last-change-trigger-time';
const MANAGED_BY_LABEL = 'endpointslice.kubernetes.io/managed-by';
/** The controller whose slices have a trustworthy trigger time. In a slice made by hand, the trigger time may be any text. */
const ENDPOINT_SLICE_CONTROLLER = 'endpointslice-controller.k8s.io';

interface RawObject {
  readonly metadata?: {
    readonly annotations?: Readonly<Record<string, unknown>> | null;
    readonly labels?: Readonly<Record<string, unknown>> | null;
    readonly creationTimestamp?: unknown;
  } | null;
}

/**
 * Returns the time of the pod's or Service's change that caused this version of the EndpointSlice, in milliseconds since the epoch
 * with a resolution of one second. Returns undefined if Kubernetes' own controller does not manage the slice, or if the slice has no
 * such annotation: Kubernetes removes the annotation when a later write has another cause.
 */
export function changeTriggerTimeOf(raw: unknown): number | undefined {
  const { metadata } = raw as RawObject;
  if (metadata?.labels?.[MANAGED_BY_LABEL] !== ENDPOINT_SLICE_CONTROLLER) return undefined;
  return timeOf(metadata.annotations?.[CHANGE_TRIGGER_ANNOTATION]);
}

/** Returns when the API server created the object, in milliseconds since the epoch. Users cannot forge this field. */
export function creationTimeOf(raw: unknown): number | undefined {
  return timeOf((raw as RawObject).metadata?.creationTimestamp);
}

function timeOf(text: unknown): number | undefined {
  return typeof text === 'string' ? parseTimestamp(text) : undefined;
}
