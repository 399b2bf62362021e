import {
  MAX_RULES,
  parseDuration,
  parseQuantity,
  RULE_ACTIONS,
  RULE_METRICS,
  type Rule,
  type RuleMetric,
  type TenantLimits,
  throttledLimitsOf,
} from '@weir/model';
import { DNS_LABEL, Fields, type TextFormat } from './fields.ts';

const RULE_FIELDS = ['name', 'metric', 'above', 'for', 'action', 'throttleTo', 'duration'];
const PERCENTAGE = /^([1-9][0-9]{0,2})%$/;

const DURATION: TextFormat = {
  allowed: 'a duration such as 30s, 5m or 1h',
  matches: (text) => (parseDuration(text) ?? 0) > 0,
};

/**
 * Reads `spec.rules`. Leaves out a rule with mistakes, and calls `onMistake` for each mistake, so that the other rules of the policy act.
 * `limits` are the limits of the same policy.
 */
export function readRules(spec: Fields, limits: TenantLimits, onMistake: (mistake: string) => void): readonly Rule[] {
  const items = spec.list('rules');
  if (items.length > MAX_RULES) spec.noteInvalid('rules', `at most ${MAX_RULES} rules`);
  const names = new Set<string>();
  return items.slice(0, MAX_RULES).flatMap((item, index): Rule[] => {
    const mistakes: string[] = [];
    const fields = new Fields(item, mistakes, `${spec.path === '' ? '' : `${spec.path}.`}rules[${index}]`);
    const rule = readRule(fields, limits);
    if (rule.name !== '' && names.has(rule.name))
      fields.noteInvalid('name', 'a name that no other rule of this policy has');
    names.add(rule.name);
    const subject = rule.name === '' ? '' : `rule "${rule.name}" does not act: `;
    for (const mistake of mistakes) onMistake(`${subject}${mistake}`);
    return mistakes.length === 0 ? [Object.freeze(rule)] : [];
  });
}

function readRule(fields: Fields, limits: TenantLimits): Rule {
  fields.refuseUnknown(RULE_FIELDS);
  const name = fields.requiredText('name', DNS_LABEL);
  for (const field of ['metric', 'action', 'above'])
    if (!fields.has(field)) fields.noteMissing(field, EXAMPLES[field] ?? '');
  const metric = fields.oneOf('metric', RULE_METRICS, 'inBitsPerSecond');
  const action = fields.oneOf('action', RULE_ACTIONS, 'Notify');
  const above = readThreshold(fields, limits[metric], metric);
  const forMs = readDuration(fields, 'for');
  if (fields.has('for') && metric === 'trafficPerMonth')
    fields.noteUnused('for', 'trafficPerMonth is a total over the month, not a rate');
  const durationMs = readDuration(fields, 'duration');
  if (fields.has('duration') && action === 'Notify') fields.noteUnused('duration', 'action Notify has no duration');
  if (action !== 'Throttle' && fields.has('throttleTo'))
    fields.noteUnused('throttleTo', 'only action Throttle uses it');
  const throttleTo = action === 'Throttle' ? readThrottleTo(fields, limits, metric) : null;
  return { name, metric, above, forMs: forMs ?? 0, action, throttleTo, durationMs };
}

const EXAMPLES: Readonly<Record<string, string>> = {
  metric: RULE_METRICS.join(', '),
  action: RULE_ACTIONS.join(', '),
  above: 'a quantity such as 500M, or a share of the limit such as 80%',
};

/** Reads `above`. `limit` is the limit to which a percentage refers. */
function readThreshold(fields: Fields, limit: number | undefined, metric: RuleMetric): number {
  if (!fields.has('above')) return 0;
  const text = textOf(fields, 'above');
  const percent = PERCENTAGE.exec(text)?.[1];
  if (percent === undefined) {
    const value = wholeQuantity(text);
    if (value === undefined) fields.noteInvalid('above', EXAMPLES.above ?? '');
    if (value === 0) fields.noteInvalid('above', 'more than 0, since any traffic is above 0');
    else if (value !== undefined && limit !== undefined && value >= limit && metric !== 'trafficPerMonth')
      fields.noteInvalid(
        'above',
        `less than limits.${metric}, which is ${limit}, since clients cannot exceed the limit`,
      );
    return value ?? 0;
  }
  if (limit === undefined)
    fields.noteInvalid('above', `a quantity, since limits.${metric} is not set and a percentage needs it`);
  else if (limit === 0) fields.noteInvalid('above', `a quantity, since limits.${metric} is 0`);
  else if (Number(percent) >= 100 && metric !== 'trafficPerMonth')
    fields.noteInvalid('above', `less than 100%, since clients cannot exceed limits.${metric}`);
  return ((limit ?? 0) * Number(percent)) / 100;
}

function readThrottleTo(fields: Fields, limits: TenantLimits, metric: RuleMetric): number {
  if (!fields.has('throttleTo')) {
    fields.noteMissing('throttleTo', 'a quantity such as 10M');
    return 0;
  }
  const value = wholeQuantity(textOf(fields, 'throttleTo'));
  if (value === undefined) fields.noteInvalid('throttleTo', 'a quantity such as 10M');
  if (value === 0) fields.noteInvalid('throttleTo', 'more than 0, or action Suspend');
  const tooHigh = throttledLimitsOf(metric).find((name) => (value ?? 0) >= (limits[name] ?? Number.POSITIVE_INFINITY));
  if (tooHigh !== undefined)
    fields.noteInvalid('throttleTo', `less than limits.${tooHigh}, which is ${limits[tooHigh]}`);
  return value ?? 0;
}

function readDuration(fields: Fields, name: string): number | null {
  const text = fields.text(name, DURATION);
  return text === null ? null : (parseDuration(text) ?? null);
}

function textOf(fields: Fields, name: string): string {
  const value = fields.raw(name);
  return typeof value === 'string' || typeof value === 'number' ? String(value) : '';
}

/** Returns a Kubernetes quantity; undefined if the text is no quantity, or not a whole number. */
function wholeQuantity(text: string): number | undefined {
  const quantity = text.length <= 40 ? parseQuantity(text) : undefined;
  return quantity?.kind === 'whole' ? quantity.value : undefined;
}
