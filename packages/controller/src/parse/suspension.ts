import { MADE_BY_ANNOTATION, madeByOf, type SuspensionObject, type SuspensionTarget } from '@weir/model';
import { specManagerOf } from '../kubernetes/managed-fields.ts';
import type { Fields } from './fields.ts';
import { DNS_LABEL, DNS_SUBDOMAIN, LABEL_TEXT, parseTimestamp, TIMESTAMP } from './fields.ts';
import { type ParseResult, parseObject, readMeta } from './parse-object.ts';

const TARGET_TYPES = ['Tenant', 'Namespace', 'Service'] as const;

export function parseSuspension(raw: unknown): ParseResult<SuspensionObject> {
  return parseObject('Suspension', raw, (fields) => {
    const spec = fields.object('spec');
    spec.refuseUnknown(['target', 'message', 'until', 'rule']);
    const until = spec.text('until', TIMESTAMP);
    const meta = readMeta(fields, { name: DNS_SUBDOMAIN, labels: false });
    return {
      ...meta,
      target: readTarget(spec.object('target')),
      message: spec.text('message') ?? '',
      until: until === null ? null : (parseTimestamp(until) ?? null),
      rule: spec.text('rule'),
      madeBy: madeByOf(meta.annotations[MADE_BY_ANNOTATION], specManagerOf(raw)),
    };
  });
}

/**
 * Reads the target. Refuses a field that the type does not use, because the author of such a field meant to suspend less than a target of
 * this type covers.
 */
function readTarget(target: Fields): SuspensionTarget {
  if (!target.has('type')) target.noteMissing('type', TARGET_TYPES.join(', '));
  const type = target.oneOf('type', TARGET_TYPES, 'Tenant');
  const used = { Tenant: ['tenant'], Namespace: ['namespace'], Service: ['namespace', 'service'] }[type];
  for (const name of target.names()) {
    if (name !== 'type' && !used.includes(name))
      target.noteUnused(name, `type ${type} uses only ${used.join(' and ')}`);
  }
  switch (type) {
    case 'Tenant':
      return Object.freeze({ kind: 'tenant', tenant: target.requiredText('tenant', LABEL_TEXT) });
    case 'Namespace':
      return Object.freeze({ kind: 'namespace', namespace: target.requiredText('namespace', DNS_LABEL) });
    case 'Service':
      return Object.freeze({
        kind: 'service',
        namespace: target.requiredText('namespace', DNS_LABEL),
        service: target.requiredText('service', DNS_LABEL),
      });
  }
}
