import {
  DEFAULT_POOL,
  DEFAULT_TABLE_BYTES,
  type LabelRequirement,
  type LabelSelector,
  MAX_NODES_PER_SERVICE,
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
import { CIDR, COUNT, DNS_SUBDOMAIN, Fields, HOST, LABEL_KEY, LABEL_TEXT, PORT } from './fields.ts';
import { mistakeProblems, type ParseResult, parseObject, readMeta, subjectOfRaw } from './parse-object.ts';
import { readRules } from './tenant-rules.ts';

const GRANT_FIELDS = [
  'pools',
  'nodesPerService',
  'maxNodesPerService',
  'allowedPorts',
  'allowedHosts',
  'allowedEndpointCIDRs',
];
const SPEC_FIELDS = ['priority', 'namespaceSelector', 'tenantFrom', ...GRANT_FIELDS, 'limits', 'rules'];
const COUNT_LIMITS = ['services', 'ports', 'connections', 'newConnectionsPerSecond', 'requestsPerSecond'] as const;
const BITS_EXAMPLE = 'bits such as 100M, 1.5G or 1Gi';

const QUANTITY_LIMITS = [
  { name: 'inBitsPerSecond', unit: 'bits', example: BITS_EXAMPLE },
  { name: 'outBitsPerSecond', unit: 'bits', example: BITS_EXAMPLE },
  { name: 'trafficPerMonth', unit: 'bytes', example: 'bytes such as 500Gi, 10Ti or 2e12' },
  { name: 'tableBytes', unit: 'bytes', example: 'bytes such as 500Ki or 4Mi' },
] as const;

const LIMITS: readonly string[] = [...COUNT_LIMITS, ...QUANTITY_LIMITS.map(({ name }) => name)];
const PRIORITY_RANGE = { from: -1_000_000_000, to: 1_000_000_000 };
const NODES_RANGE = { from: 1, to: MAX_NODES_PER_SERVICE };

/** Parses a TenantPolicy. A rule with mistakes is left out and is a problem, and the rest of the policy applies. */
export function parseTenantPolicy(raw: unknown): ParseResult<TenantPolicyObject> {
  const ruleMistakes: string[] = [];
  const result = parseObject('TenantPolicy', raw, (fields) => ({
    ...readMeta(fields, { name: DNS_SUBDOMAIN, labels: false }),
    spec: readTenantPolicySpec(fields.object('spec'), (mistake) => ruleMistakes.push(mistake)),
  }));
  const ruleProblems = mistakeProblems('TenantPolicy', raw, { mistakes: ruleMistakes, code: 'InvalidRule' });
  if (result.object === undefined) return { object: undefined, problems: [...result.problems, ...ruleProblems] };
  const unused = unusedFieldProblems(subjectOfRaw('TenantPolicy', raw), new Fields(raw, []).object('spec'));
  return { object: result.object, problems: [...ruleProblems, ...unused] };
}

/**
 * Reads the `spec` of a TenantPolicy. The `defaultTenantPolicy` in the fleet's configuration has the same format. Calls `onRuleMistake`
 * for each mistake of a rule.
 */
export function readTenantPolicySpec(spec: Fields, onRuleMistake: (mistake: string) => void): TenantPolicySpec {
  spec.refuseUnknown(SPEC_FIELDS);
  spec.object('limits').refuseUnknown(LIMITS);
  const own = {
    priority: spec.integer('priority', PRIORITY_RANGE) ?? 0,
    namespaceSelector: readLabelSelector(spec.object('namespaceSelector')),
    tenantFrom: readTenantFrom(spec.object('tenantFrom')),
    grants: readGrants(spec),
    limits: readLimits(spec.object('limits')),
  };
  const rules = readRules(spec, own.limits, onRuleMistake);
  return Object.freeze({ ...own, ...(rules.length > 0 && { rules: Object.freeze(rules) }) });
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
    maxNodesPerService: spec.integer('maxNodesPerService', NODES_RANGE),
    allowedPorts: spec.has('allowedPorts') ? Object.freeze(readPortRanges(spec, 'allowedPorts')) : null,
    allowedHosts: Object.freeze([...new Set(hosts)]),
    allowedEndpointCIDRs: Object.freeze([...new Set(networks)]),
  });
}

const PORT_RANGE = /^(\d{1,5})(?:-(\d{1,5}))?$/;

/** Reads ports and port ranges, as numbers or text: `443`, `8000-8999`. */
function readPortRanges(fields: Fields, name: string): PortRange[] {
  return fields.list(name).flatMap((item, index) => {
    const [, first, last = first] = PORT_RANGE.exec(typeof item === 'number' ? String(item) : textOrEmpty(item)) ?? [];
    const range = { from: Number(first), to: Number(last) };
    if (range.from >= PORT.from && range.from <= range.to && range.to <= PORT.to) return [Object.freeze(range)];
    fields.noteInvalidItem(name, index, 'a port from 1 to 65535, or a range such as 8000-8999');
    return [];
  });
}

function textOrEmpty(value: unknown): string {
  return typeof value === 'string' ? value : '';
}

function readLimits(fields: Fields): TenantLimits {
  const counts = COUNT_LIMITS.map((name) => [name, fields.integer(name, COUNT)] as const);
  const quantities = QUANTITY_LIMITS.map((limit) => [limit.name, readQuantity(fields, limit)] as const);
  const limits = Object.fromEntries([...counts, ...quantities].filter(([, value]) => value !== null));
  return Object.freeze({ tableBytes: DEFAULT_TABLE_BYTES, ...limits });
}

/** Reads a Kubernetes quantity, which is a string or a number in JSON. Returns null if the field is absent or wrong. */
function readQuantity(fields: Fields, { name, unit, example }: (typeof QUANTITY_LIMITS)[number]): number | null {
  const value = fields.raw(name);
  if (value === null) return null;
  const quantity = parseQuantity(typeof value === 'number' || typeof value === 'string' ? String(value) : '');
  switch (quantity.kind) {
    case 'whole':
      return quantity.value;
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

/** Returns warnings about fields that are valid but have no effect. */
export function unusedFieldProblems(subject: string, spec: Fields): readonly Problem[] {
  return unusedFieldMessages(spec.object('tenantFrom')).map((message) => ({
    code: 'InvalidObject',
    subject,
    severity: 'warning',
    heals: false,
    message,
  }));
}

/**
 * Returns messages about unused fields. For example, a user who sets `tenantFrom.name` without type Name does not get one tenant:
 * each namespace becomes a separate tenant with separate limits.
 */
function unusedFieldMessages(tenantFrom: Fields): string[] {
  const type = tenantFrom.oneOf('type', TENANT_FROM_TYPES, 'Namespace');
  const fields = [
    { name: 'label', usedWith: 'Label' },
    { name: 'name', usedWith: 'Name' },
  ];
  return fields
    .filter(({ name, usedWith }) => tenantFrom.has(name) && usedWith !== type)
    .map(
      ({ name, usedWith }) =>
        `${tenantFrom.path}.${name} is not used with type ${type}; use type ${usedWith}, or remove it`,
    );
}

const OPERATORS = ['In', 'NotIn', 'Exists', 'DoesNotExist'] as const;

/** Reads a metav1.LabelSelector. An absent or empty selector selects everything. */
export function readLabelSelector(fields: Fields): LabelSelector {
  fields.refuseUnknown(['matchLabels', 'matchExpressions']);
  return Object.freeze({
    matchLabels: Object.freeze(fields.textMap('matchLabels')),
    matchExpressions: Object.freeze(fields.objects('matchExpressions').map(readRequirement)),
  });
}

function readRequirement(item: Fields): LabelRequirement {
  item.refuseUnknown(['key', 'operator', 'values']);
  if (!item.has('operator')) item.noteMissing('operator', OPERATORS.join(', '));
  const operator = item.oneOf('operator', OPERATORS, 'Exists');
  const values = item.texts('values');
  const takesValues = operator === 'In' || operator === 'NotIn';
  if (takesValues && values.length === 0) item.noteMissing('values', `at least one value for ${operator}`);
  if (!takesValues && values.length > 0) item.noteUnused('values', `operator ${operator} takes no values`);
  return Object.freeze({ key: item.requiredText('key', LABEL_KEY), operator, values: Object.freeze(values) });
}
