import type { TenantLimits } from '../policy.ts';

/** A rule of a TenantPolicy: while a metric of a tenant is above a threshold, the rule acts on the tenant. */
export interface Rule {
  readonly name: string;
  readonly metric: RuleMetric;
  /** The threshold in the unit of the metric. A percentage of a limit is already converted. */
  readonly above: number;
  /** How long the metric must stay above the threshold. 0 if the first sample above the threshold is enough. */
  readonly forMs: number;
  readonly action: RuleAction;
  /** The limit that holds while the rule throttles, in the unit of `throttledLimitsOf`; null with another action. */
  readonly throttleTo: number | null;
  /** How long the action lasts; null for the default. */
  readonly durationMs: number | null;
}

/** Rates are summed over the whole fleet. `trafficPerMonth` is the number of received and sent bytes of the current month (UTC). */
export const RULE_METRICS = [
  'inBitsPerSecond',
  'outBitsPerSecond',
  'newConnectionsPerSecond',
  'requestsPerSecond',
  'trafficPerMonth',
] as const;
export type RuleMetric = (typeof RULE_METRICS)[number];

/** `Notify` changes nothing for clients, and reports when another action would have begun and ended. */
export const RULE_ACTIONS = ['Notify', 'Throttle', 'Suspend'] as const;
export type RuleAction = (typeof RULE_ACTIONS)[number];

/** The maximum number of rules of one policy. Bounds the memory of the controller for each tenant. */
export const MAX_RULES = 32;

/**
 * Records that a rule acts on a tenant. The routing table holds the record in the entry of the tenant, so that a new leader continues the
 * action, and consoles show the action.
 */
export interface RuleRecord extends Pick<Rule, 'metric' | 'above' | 'action'> {
  /** The name of the rule. */
  readonly rule: string;
  /** Present if `action` is `Throttle`. */
  readonly throttleTo?: number;
  /** When the rule began to act, in milliseconds since the epoch. */
  readonly since: number;
  /** When the action ends, in milliseconds since the epoch; null if it ends when the metric is low. */
  readonly until: number | null;
  /** The value of the metric when the rule began to act. */
  readonly value: number;
  /** How long the metric had been above the threshold when the rule began to act, in milliseconds. */
  readonly forMs: number;
  /**
   * `acting`: the action is in force. `over`: the action has ended, but the metric has not been at or below the threshold since then, so the
   * rule does not act again.
   */
  readonly phase: 'acting' | 'over';
}

type ThrottledLimit = 'inBitsPerSecond' | 'outBitsPerSecond' | 'newConnectionsPerSecond' | 'requestsPerSecond';

/** Returns the limits that a Throttle of this metric lowers. A Throttle of `trafficPerMonth` limits the bandwidth in both directions. */
export function throttledLimitsOf(metric: RuleMetric): readonly ThrottledLimit[] {
  return metric === 'trafficPerMonth' ? ['inBitsPerSecond', 'outBitsPerSecond'] : [metric];
}

/** Returns the limits of a tenant while the records apply: each throttled limit has the lowest value of the policy and the records. */
export function withThrottles(limits: TenantLimits, records: readonly RuleRecord[]): TenantLimits {
  const lowered: { -readonly [K in ThrottledLimit]?: number } = {};
  for (const { phase, action, metric, throttleTo } of records) {
    if (phase !== 'acting' || action !== 'Throttle' || throttleTo === undefined) continue;
    for (const name of throttledLimitsOf(metric)) {
      const limit = lowered[name] ?? limits[name] ?? Number.POSITIVE_INFINITY;
      if (throttleTo < limit) lowered[name] = throttleTo;
    }
  }
  return Object.keys(lowered).length === 0 ? limits : { ...limits, ...lowered };
}

/**
 * Reports whether a record is of this version of a rule. A rule whose metric, threshold, action or throttle was changed begins anew. A new
 * `for` or `duration` applies from the next action on.
 */
export function isRecordOf(record: RuleRecord, rule: Rule): boolean {
  return (
    record.rule === rule.name &&
    record.metric === rule.metric &&
    record.action === rule.action &&
    record.above === rule.above &&
    (record.throttleTo ?? null) === rule.throttleTo
  );
}
