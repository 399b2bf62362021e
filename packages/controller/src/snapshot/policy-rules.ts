// The rules of a TenantPolicy, read as strictly as the CRD has them. They are not enforced by this version, which is told
// elsewhere; what is wrong in them is told already.
import { parseDuration, parseQuantity } from '@weir/model';
import type { Fields, TextFormat } from './fields.ts';
import { DNS_LABEL } from './formats.ts';

const METRICS = [
  'inBitsPerSecond',
  'outBitsPerSecond',
  'newConnectionsPerSecond',
  'requestsPerSecond',
  'trafficPerMonth',
] as const;
const ACTIONS = ['Notify', 'Throttle', 'Suspend'] as const;
const RULE_FIELDS = ['name', 'metric', 'above', 'for', 'action', 'throttleTo', 'duration'];
const MAX_RULES = 32;
const PERCENTAGE = /^[1-9][0-9]{0,2}%$/;
const DURATION: TextFormat = {
  allowed: 'a duration such as 30s, 5m or 1h',
  matches: (text) => (parseDuration(text) ?? 0) > 0,
};

/** Notes what is wrong in `spec.rules`. */
export function validateRules(spec: Fields): void {
  const rules = spec.objects('rules');
  const limits = spec.object('limits');
  if (rules.length > MAX_RULES) spec.noteInvalid('rules', `at most ${MAX_RULES} rules`);
  const names = new Set<string>();
  for (const rule of rules.slice(0, MAX_RULES)) {
    const name = rule.requiredText('name', DNS_LABEL);
    if (name !== '' && names.has(name)) rule.noteInvalid('name', 'a name that no other rule of this policy has');
    names.add(name);
    validateRule(rule, limits);
  }
}

function validateRule(rule: Fields, limits: Fields): void {
  rule.refuseUnknown(RULE_FIELDS);
  for (const name of ['metric', 'action', 'above']) if (!rule.has(name)) rule.noteMissing(name, EXAMPLES[name] ?? '');
  const metric = rule.oneOf('metric', METRICS, 'inBitsPerSecond');
  const action = rule.oneOf('action', ACTIONS, 'Notify');
  const above = textOf(rule, 'above');
  if (PERCENTAGE.test(above)) {
    if (!limits.has(metric))
      rule.noteInvalid('above', `a quantity, for there is no limits.${metric} of which it could be a share`);
  } else if (rule.has('above') && !isQuantity(above)) rule.noteInvalid('above', EXAMPLES.above ?? '');
  rule.text('for', DURATION);
  if (rule.has('for') && metric === 'trafficPerMonth')
    rule.noteInvalid('for', 'no such field with trafficPerMonth, which is a sum');
  rule.text('duration', DURATION);
  if (rule.has('duration') && action === 'Notify') rule.noteInvalid('duration', 'no such field with action Notify');
  if (action !== 'Throttle') {
    if (rule.has('throttleTo')) rule.noteInvalid('throttleTo', `no such field with action ${action}`);
  } else if (!rule.has('throttleTo')) rule.noteMissing('throttleTo', 'a quantity such as 10M');
  else if (!isQuantity(textOf(rule, 'throttleTo'))) rule.noteInvalid('throttleTo', 'a quantity such as 10M');
}

const EXAMPLES: Readonly<Record<string, string>> = {
  metric: METRICS.join(', '),
  action: ACTIONS.join(', '),
  above: 'a quantity such as 500M, or a share of the limit such as 80%',
};

function textOf(rule: Fields, name: string): string {
  const value = rule.raw(name);
  return typeof value === 'string' || typeof value === 'number' ? String(value) : '';
}

function isQuantity(text: string): boolean {
  return text.length <= 40 && parseQuantity(text).kind === 'whole';
}
