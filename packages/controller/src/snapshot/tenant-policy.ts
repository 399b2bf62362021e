import {
  DEFAULT_POOL,
  type PortRange,
  type Problem,
  parseCidr,
  parseHost,
  parseQuantity,
  type TenantFrom,
  type TenantGrants,
  type TenantLimits,
  type TenantPolicyObject,
  type TenantPolicySpec,
} from '@weir/model';
import { Fields } from './fields.ts';
import { CIDR, COUNT, DNS_SUBDOMAIN, HOST, LABEL_KEY, LABEL_TEXT, PORT } from './formats.ts';
import { readLabelSelector } from './label-selector.ts';
import { readMeta } from './meta.ts';
import { validateRules } from './policy-rules.ts';
import { type ParseResult, parseObject, subjectOfRaw } from './projection.ts';

const GRANT_FIELDS = ['pools', 'nodesPerService', 'allowedPorts', 'allowedHosts', 'allowedEndpointCIDRs'];
const ENFORCED_FIELDS = ['priority', 'namespaceSelector', 'tenantFrom', ...GRANT_FIELDS, 'limits'];
const UNENFORCED_FIELDS = ['rules'];
const COUNT_LIMITS = ['services', 'ports', 'connections', 'newConnectionsPerSecond'] as const;
const BITS_EXAMPLE = 'bits such as 100M, 1.5G or 1Gi';
const QUANTITY_LIMITS = [
  { name: 'inBitsPerSecond', unit: 'bits', example: BITS_EXAMPLE },
  { name: 'outBitsPerSecond', unit: 'bits', example: BITS_EXAMPLE },
  { name: 'trafficPerMonth', unit: 'bytes', example: 'bytes such as 500Gi, 10Ti or 2e12' },
] as const;
const ENFORCED_LIMITS: readonly string[] = [...COUNT_LIMITS, ...QUANTITY_LIMITS.map(({ name }) => name)];
const UNENFORCED_LIMITS = ['requestsPerSecond'];
const PRIORITY_RANGE = { from: -1_000_000_000, to: 1_000_000_000 };
const NODES_RANGE = { from: 1, to: 16 };

export function parseTenantPolicy(raw: unknown): ParseResult<TenantPolicyObject> {
  const projection = parseObject('TenantPolicy', raw, (fields) => ({
    ...readMeta(fields, { name: DNS_SUBDOMAIN, labels: false }),
    spec: readTenantPolicySpec(fields.object('spec')),
  }));
  if (projection.object === undefined) return projection;
  return {
    object: projection.object,
    problems: unenforcedProblems(subjectOfRaw('TenantPolicy', raw), new Fields(raw, []).object('spec')),
  };
}

/** Also the format of the fleet's `defaultTenantPolicy`, which is no object but configuration. */
export function readTenantPolicySpec(spec: Fields): TenantPolicySpec {
  const limits = spec.object('limits');
  spec.refuseUnknown([...ENFORCED_FIELDS, ...UNENFORCED_FIELDS]);
  limits.refuseUnknown([...ENFORCED_LIMITS, ...UNENFORCED_LIMITS]);
  validateRules(spec);
  return Object.freeze({
    priority: spec.integer('priority', PRIORITY_RANGE) ?? 0,
    namespaceSelector: readLabelSelector(spec.object('namespaceSelector')),
    tenantFrom: readTenantFrom(spec.object('tenantFrom')),
    grants: readGrants(spec),
    limits: readLimits(limits),
  });
}

const TENANT_FROM_TYPES = ['Namespace', 'Label', 'Name'] as const;

function readTenantFrom(fields: Fields): TenantFrom {
  fields.refuseUnknown(['type', 'label', 'name']);
  switch (fields.oneOf('type', TENANT_FROM_TYPES, 'Namespace')) {
    case 'Namespace':
      return Object.freeze({ kind: 'namespace' });
    case 'Label':
      return Object.freeze({ kind: 'label', label: fields.requiredText('label', LABEL_KEY) });
    case 'Name':
      return Object.freeze({ kind: 'name', name: fields.requiredText('name', LABEL_TEXT) });
  }
}

function readGrants(spec: Fields): TenantGrants {
  const pools = [...new Set(spec.texts('pools', LABEL_TEXT))];
  const hosts = spec.texts('allowedHosts', HOST).map((text) => parseHost(text) ?? text);
  const networks = spec.texts('allowedEndpointCIDRs', CIDR).map((text) => parseCidr(text)?.text ?? text);
  return Object.freeze({
    pools: Object.freeze(pools.length === 0 ? [DEFAULT_POOL] : pools),
    nodesPerService: spec.integer('nodesPerService', NODES_RANGE),
    allowedPorts: spec.has('allowedPorts') ? Object.freeze(readPortRanges(spec, 'allowedPorts')) : null,
    allowedHosts: Object.freeze([...new Set(hosts)]),
    allowedEndpointCIDRs: Object.freeze([...new Set(networks)]),
  });
}

const PORT_RANGE = /^(\d{1,5})(?:-(\d{1,5}))?$/;

/** Ports and ranges of them, as numbers or text: `443`, `8000-8999`. */
function readPortRanges(fields: Fields, name: string): PortRange[] {
  return fields.list(name).flatMap((item, index) => {
    const [, first, last = first] = PORT_RANGE.exec(typeof item === 'number' ? String(item) : readText(item)) ?? [];
    const range = { from: Number(first), to: Number(last) };
    if (range.from >= PORT.from && range.from <= range.to && range.to <= PORT.to) return [Object.freeze(range)];
    fields.noteInvalidItem(name, index, 'a port from 1 to 65535, or a range such as 8000-8999');
    return [];
  });
}

function readText(value: unknown): string {
  return typeof value === 'string' ? value : '';
}

function readLimits(fields: Fields): TenantLimits {
  const counts = COUNT_LIMITS.map((name) => [name, fields.integer(name, COUNT)] as const);
  const quantities = QUANTITY_LIMITS.map((limit) => [limit.name, readQuantity(fields, limit)] as const);
  return Object.freeze(Object.fromEntries([...counts, ...quantities].filter(([, value]) => value !== null)));
}

/** A Quantity stands in JSON as text or as a number. */
function readQuantity(fields: Fields, { name, unit, example }: (typeof QUANTITY_LIMITS)[number]): number | null {
  const value = fields.raw(name);
  if (value === null) return null;
  const reading = parseQuantity(typeof value === 'number' || typeof value === 'string' ? String(value) : '');
  switch (reading.kind) {
    case 'whole':
      return reading.value;
    case 'fraction':
      fields.noteInvalid(name, `a whole number of ${unit}`);
      return null;
    case 'too-large':
      fields.noteInvalid(name, 'less than 8Pi, or leave it out for no limit');
      return null;
    case 'malformed':
      fields.noteInvalid(name, example);
      return null;
  }
}

/** What is written and not kept must never look as if it were. */
export function unenforcedProblems(subject: string, spec: Fields): readonly Problem[] {
  const limits = spec.object('limits');
  const at = (name: string): string => (spec.path === '' ? name : `${spec.path}.${name}`);
  const later = [
    ...UNENFORCED_FIELDS.filter((name) => spec.has(name)).map(at),
    ...UNENFORCED_LIMITS.filter((name) => limits.has(name)).map((name) => at(`limits.${name}`)),
  ];
  const messages = [
    ...unusedFieldMessages(spec.object('tenantFrom')),
    ...later.map((path) => `${path} is not enforced yet by this version; what it asks for does not happen`),
  ];
  return messages.map((message) => ({ code: 'InvalidObject', subject, severity: 'warning', heals: false, message }));
}

/** Whoever names a tenant means one tenant; without its type each namespace would be one, with the limits for itself. */
function unusedFieldMessages(from: Fields): string[] {
  const type = from.oneOf('type', TENANT_FROM_TYPES, 'Namespace');
  const fields = [
    { name: 'label', of: 'Label' },
    { name: 'name', of: 'Name' },
  ];
  return fields
    .filter(({ name, of }) => from.has(name) && of !== type)
    .map(({ name, of }) => `${from.path}.${name} is not used with type ${type}; use type ${of}, or remove it`);
}
