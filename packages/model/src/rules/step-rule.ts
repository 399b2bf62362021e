// The state machine of one rule for one tenant. Times called `at` are of the monotonic clock, because a change of the wall clock must not
// shorten or lengthen `for`.
import { startOfNextMonth } from '../usage/period.ts';
import type { Rule, RuleRecord } from './rule.ts';

export interface RuleState {
  /** What the rule does to the tenant; undefined while the rule waits. */
  readonly record: RuleRecord | undefined;
  /** Since when all samples have been above the threshold, while the rule waits; else undefined. */
  readonly aboveSince: number | undefined;
  /** Since when all samples have been low enough to end the action; else undefined. */
  readonly belowSince: number | undefined;
  /** Whether a sample since the start of the action was at or below the threshold. */
  readonly wasBelow: boolean;
}

export interface RuleInput {
  /** Milliseconds of the monotonic clock. */
  readonly at: number;
  /** Milliseconds since the epoch. */
  readonly now: number;
  /** The value of the metric; undefined if the value is unknown or not fresh. */
  readonly value: number | undefined;
  /** Whether a Suspension that this rule made is in force. */
  readonly isSuspended: boolean;
}

export interface RuleStep {
  readonly state: RuleState;
  /** What happened in this step; undefined if nothing changed. */
  readonly event?: RuleEvent;
}

export interface RuleEvent {
  /**
   * `begin`: the rule begins to act. `calm`: the action ends because the metric is low. `expired`: the action ends at its `until`.
   * `released`: a user has ended the Suspension of the rule.
   */
  readonly kind: 'begin' | 'calm' | 'expired' | 'released';
  readonly record: RuleRecord;
}

/** The action of a rule without `duration` ends when the metric is below this share of the threshold. */
export const CALM_SHARE = 0.8;
/** The shortest time for which the metric must be low until the action of a rule without `duration` ends. */
export const MIN_CALM_MS = 60_000;
export const DEFAULT_SUSPENSION_MS = 3_600_000;

/** Returns the state of a rule without samples, so that `for` begins anew. The action of `record`, if present, continues. */
export function initialRuleState(record?: RuleRecord): RuleState {
  return { record, aboveSince: undefined, belowSince: undefined, wasBelow: false };
}

/** Returns the next state of a rule. Without a value, `for` begins anew, and an action ends only at its `until` or by a user. */
export function stepRule(rule: Rule, state: RuleState, input: RuleInput): RuleStep {
  const { record } = state;
  if (record === undefined) return stepWaiting(rule, state, input);
  if (record.phase === 'acting') return stepActing(rule, { ...state, record }, input);
  const isBelow = input.value !== undefined && input.value <= rule.above;
  return { state: isBelow ? initialRuleState() : state };
}

function stepWaiting(rule: Rule, state: RuleState, { at, now, value, isSuspended }: RuleInput): RuleStep {
  if (value === undefined || value <= rule.above || isSuspended)
    return { state: state.aboveSince === undefined ? state : initialRuleState() };
  const aboveSince = state.aboveSince ?? at;
  if (at - aboveSince < rule.forMs) return { state: { ...state, aboveSince } };
  const { name, metric, above, action, throttleTo, forMs } = rule;
  const record: RuleRecord = {
    rule: name,
    metric,
    above,
    action,
    ...(throttleTo !== null && { throttleTo }),
    since: now,
    until: untilOf(rule, now),
    value,
    forMs,
    phase: 'acting',
  };
  return { state: initialRuleState(record), event: { kind: 'begin', record } };
}

function untilOf({ metric, action, durationMs }: Rule, now: number): number | null {
  if (durationMs !== null) return now + durationMs;
  if (action === 'Suspend') return now + DEFAULT_SUSPENSION_MS;
  return metric === 'trafficPerMonth' ? startOfNextMonth(now) : null;
}

function stepActing(rule: Rule, state: RuleState & { readonly record: RuleRecord }, input: RuleInput): RuleStep {
  const { record } = state;
  const { at, now, value, isSuspended } = input;
  const wasBelow = state.wasBelow || (value !== undefined && value <= rule.above);
  if (record.until !== null && now >= record.until) return ended(record, 'expired', wasBelow);
  if (record.action === 'Suspend' && !isSuspended) return ended(record, 'released', false);
  if (record.until !== null) return { state: wasBelow === state.wasBelow ? state : { ...state, wasBelow } };
  const isCalm = value !== undefined && value < rule.above * CALM_SHARE;
  const belowSince = isCalm ? (state.belowSince ?? at) : undefined;
  if (belowSince !== undefined && at - belowSince >= Math.max(rule.forMs, MIN_CALM_MS))
    return ended(record, 'calm', true);
  return { state: { ...state, belowSince, wasBelow } };
}

function ended(record: RuleRecord, kind: RuleEvent['kind'], wasBelow: boolean): RuleStep {
  const state = initialRuleState(wasBelow ? undefined : { ...record, phase: 'over' });
  return { state, event: { kind, record } };
}
