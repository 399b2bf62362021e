// Messages about rules. The messages depend only on records, so that a message does not change while the rule acts.
import { formatDuration } from '../duration.ts';
import { policyText } from '../translate/tenancy.ts';
import { timestampOf } from '../usage/period.ts';
import { type RuleMetric, type RuleRecord, throttledLimitsOf } from './rule.ts';
import { CALM_SHARE, MIN_CALM_MS, type RuleEvent } from './step-rule.ts';

const PREFIXES = ['', 'k', 'M', 'G', 'T', 'P'] as const;

/** Returns a value of a metric with its unit, to three digits: `1.4 Gbit/s`, `120 connections/s`, `2 TB`. */
export function metricText(metric: RuleMetric, value: number): string {
  switch (metric) {
    case 'inBitsPerSecond':
    case 'outBitsPerSecond':
      return `${scaledText(value)}bit/s`;
    case 'newConnectionsPerSecond':
      return `${rounded(value)} connections/s`;
    case 'requestsPerSecond':
      return `${rounded(value)} requests/s`;
    case 'trafficPerMonth':
      return `${scaledText(value)}B`;
  }
}

function scaledText(value: number): string {
  const last = PREFIXES.length - 1;
  let step = Math.min(last, Math.max(0, Math.floor(Math.log10(Math.max(1, value)) / 3)));
  // 999,600 is 1,000 k when rounded, so 1 M.
  if (step < last && Number(rounded(value / 1000 ** step)) >= 1000) step += 1;
  return `${rounded(value / 1000 ** step)} ${PREFIXES[step]}`;
}

function rounded(value: number): string {
  return String(value >= 1000 ? Math.round(value) : Number(value.toPrecision(3)));
}

/** Returns the figures on which a rule acted: `1.4 Gbit/s out for 5m, above 1 Gbit/s`. */
export function ruleFiguresText({ metric, value, above, forMs }: RuleRecord): string {
  const time = forMs > 0 && metric !== 'trafficPerMonth' ? ` for ${formatDuration(forMs)}` : '';
  return `${metricText(metric, value)}${DIRECTIONS[metric]}${time}, above ${metricText(metric, above)}`;
}

const DIRECTIONS: Readonly<Record<RuleMetric, string>> = {
  inBitsPerSecond: ' in',
  outBitsPerSecond: ' out',
  newConnectionsPerSecond: '',
  requestsPerSecond: '',
  trafficPerMonth: ' this month',
};

/** Returns when the action of a record ends: `until 2026-07-01T12:00:00Z`, or the condition that ends the action. */
export function ruleEndText({ until, metric, above, forMs }: RuleRecord): string {
  if (until !== null) return `until ${timestampOf(until)}`;
  const calm = `${metricText(metric, above * CALM_SHARE)}${DIRECTIONS[metric]}`;
  return `until the rate is below ${calm} for ${formatDuration(Math.max(forMs, MIN_CALM_MS))}`;
}

interface RuleOwner {
  readonly name: string;
  /** Name of the TenantPolicy; null for the fleet's default policy. */
  readonly policy: string | null;
}

/** Returns the message of the Services of a tenant while a rule throttles the tenant. */
export function throttleMessage(record: RuleRecord, { name, policy }: RuleOwner): string {
  const { rule, throttleTo = 0, metric } = record;
  const limits = throttledLimitsOf(metric);
  const limited = `${limits.join(' and ')} of tenant "${name}" ${limits.length === 1 ? 'is' : 'are'} limited to ${metricText(limits[0] ?? metric, throttleTo)}`;
  return `rule "${rule}" of ${policyText(policy)} throttles: ${limited} ${ruleEndText(record)}, because of ${ruleFiguresText(record)}`;
}

/** Returns the message that clients and the tenant get while a rule suspends the tenant. */
export function suspendMessage(record: RuleRecord, { name, policy }: RuleOwner): string {
  return `rule "${record.rule}" of ${policyText(policy)} suspends tenant "${name}" ${ruleEndText(record)}, because of ${ruleFiguresText(record)}`;
}

/** Returns the note of the Kubernetes Event about what a rule does, or would have done with another action than Notify. */
export function ruleEventText({ kind, record }: RuleEvent, owner: RuleOwner): string {
  const start = `rule "${record.rule}" of ${policyText(owner.policy)}`;
  const since = `since ${timestampOf(record.since)}`;
  switch (kind) {
    case 'begin':
      if (record.action === 'Throttle') return throttleMessage(record, owner);
      if (record.action === 'Suspend') return suspendMessage(record, owner);
      return `${start}: tenant "${owner.name}" has ${ruleFiguresText(record)}; action Throttle or Suspend would begin now`;
    case 'calm':
    case 'expired': {
      const why =
        kind === 'calm'
          ? `the rate is below ${metricText(record.metric, record.above * CALM_SHARE)}`
          : 'its time is over';
      return record.action === 'Notify'
        ? `${start}: action Throttle on tenant "${owner.name}" ${since} would end now, because ${why}`
        : `${start} no longer ${VERBS[record.action]} tenant "${owner.name}" (${since}), because ${why}`;
    }
    case 'released':
      return `${start}: a user ended the Suspension of tenant "${owner.name}"; the rule acts again when the value has been at or below ${metricText(record.metric, record.above)}`;
  }
}

const VERBS = { Notify: 'reports', Throttle: 'throttles', Suspend: 'suspends' } as const;
