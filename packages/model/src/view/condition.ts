// The conditions `weir.dev/…` of a Service: what was decided (the entry) and what the fleet reports, put together.

import { codePointByteLength, joinItems, joinSentences } from '../message-text.ts';
import { DEGRADED_REASONS, type DegradedReason, type ProgrammedReason } from '../reason.ts';
import type { Suspension } from '../suspension.ts';
import type { ServiceEntry, StatusReason } from '../table/entry.ts';
import { noNodesMessage } from '../translate/allocate/placement-messages.ts';
import type { Readiness } from './readiness.ts';

export interface Condition {
  /** Without the prefix `weir.dev/`. */
  readonly type: 'Accepted' | 'Programmed' | 'Degraded' | 'Suspended';
  readonly status: 'True' | 'False' | 'Unknown';
  readonly reason: string;
  readonly message: string;
}

interface ConditionInput {
  readonly addresses: readonly string[];
  /** How many of its nodes have confirmed all of its ports. */
  readonly confirmed: number;
  readonly errors: readonly string[];
  readonly readiness: Readiness;
  readonly reachable: boolean;
}

/** All conditions that hold; Degraded and Suspended are absent when fine. */
export function conditionsFor(entry: ServiceEntry, facts: ConditionInput, cutoff: Suspension | undefined): Condition[] {
  const accepted = entry.accepted.reason === 'Accepted';
  const conditions: Condition[] = [
    { type: 'Accepted', status: accepted ? 'True' : 'False', ...entry.accepted },
    programmedConditionFor(entry, facts),
  ];
  const degraded = degradedConditionFor(entry, facts);
  if (degraded !== undefined) conditions.push({ type: 'Degraded', status: 'True', ...degraded });
  if (cutoff !== undefined) conditions.push(suspendedConditionFor(cutoff));
  return conditions.map((condition) => ({ ...condition, message: truncateMessage(condition.message) }));
}

export const FLEET_UNREACHABLE: Condition = {
  type: 'Programmed',
  status: 'Unknown',
  reason: 'FleetUnreachable',
  message:
    'the fleet cannot be reached now, so it is not known whether this is served; what was served goes on, and it is tried again by itself: if it lasts, ask the operator whether the store of the fleet is up',
};

function programmedConditionFor(entry: ServiceEntry, facts: ConditionInput): Condition {
  const not = (reason: ProgrammedReason, message: string): Condition => ({
    type: 'Programmed',
    status: 'False',
    reason,
    message,
  });
  if (entry.settings === null) return not('WaitingForProxy', 'nothing is served: see the condition weir.dev/Accepted');
  if (!facts.reachable && facts.addresses.length === 0) {
    return FLEET_UNREACHABLE;
  }
  if (facts.addresses.length > 0) {
    const addresses = joinItems(facts.addresses);
    return {
      type: 'Programmed',
      status: 'True',
      reason: 'Programmed',
      message: facts.readiness.hasEndpoints
        ? `served at ${addresses}`
        : `held at ${addresses}; clients are refused while no endpoint is ready`,
    };
  }
  if (entry.nodes.length === 0) return not('NoNodes', noNodesMessage(entry.pool));
  if (facts.errors.length > 0) return not('BindFailed', bindErrorText(facts.errors));
  const proxies = `${entry.nodes.length === 1 ? 'the proxy' : 'the proxies'} of ${joinItems(entry.nodes)}`;
  return not(
    'WaitingForProxy',
    `waiting for ${proxies} to confirm the ports, which takes a moment; if it lasts, ask the operator whether they run (weir get proxies)`,
  );
}

function bindErrorText(errors: readonly string[]): string {
  return `${joinSentences(errors)}; it is tried again by itself`;
}

function degradedConditionFor(entry: ServiceEntry, facts: ConditionInput): StatusReason<DegradedReason> | undefined {
  if (entry.settings === null) return undefined;
  const found = [...entry.degraded];
  const { message } = facts.readiness;
  if (message !== null) found.push({ reason: 'NoReadyEndpoints', message });
  // A proxy that is only not heard says nothing here: with each that restarts all its Services would be written.
  if (facts.addresses.length > 0 && facts.errors.length > 0) {
    const lack =
      facts.confirmed > 0
        ? 'not every node of it serves'
        : 'no node serves all of it now, and what was published stays';
    found.push({ reason: 'FewerNodes', message: `${lack}: ${bindErrorText(facts.errors)}` });
  }
  found.sort((a, b) => DEGRADED_REASONS.indexOf(a.reason) - DEGRADED_REASONS.indexOf(b.reason));
  const gravest = found[0];
  return gravest && { reason: gravest.reason, message: joinSentences(found.map((verdict) => verdict.message)) };
}

function suspendedConditionFor(cutoff: Suspension): Condition {
  return {
    type: 'Suspended',
    status: 'True',
    reason: cutoff.reason,
    message: cutoff.message || `cut off by Suspension "${cutoff.name}"; ask the operator of the fleet`,
  };
}

/** Messages stand in the status of an object that everybody's tools carry around. */
const MAX_MESSAGE_BYTES = 1024;

/** At most 1,024 bytes of UTF-8, cut between characters and then marked with an ellipsis. */
export function truncateMessage(message: string): string {
  let bytes = 0;
  let end = 0;
  let cut = 0;
  for (const character of message) {
    bytes += codePointByteLength(character.codePointAt(0) ?? 0);
    end += character.length;
    if (bytes <= MAX_MESSAGE_BYTES - codePointByteLength(0x2026)) cut = end;
    if (bytes > MAX_MESSAGE_BYTES) return `${message.slice(0, cut)}…`;
  }
  return message;
}
