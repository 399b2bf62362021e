// The conditions `weir.dev/…` of a Service, derived from the Service's table entry and from the reports of the proxies.

import { codePointByteLength, joinItems, joinSentences } from '../message-text.ts';
import { DEGRADED_REASONS, type DegradedReason, type ProgrammedReason } from '../reason.ts';
import { type Suspension, suspendedText } from '../suspension.ts';
import type { ServiceEntry, StatusReason } from '../table/entry.ts';
import { noNodesMessage } from '../translate/allocate/placement-messages.ts';
import { timestampOf } from '../usage/period.ts';
import type { Readiness } from './readiness.ts';

export interface Condition {
  /** The type without the prefix `weir.dev/`. */
  readonly type: 'Accepted' | 'Programmed' | 'Degraded' | 'Suspended';
  readonly status: 'True' | 'False' | 'Unknown';
  readonly reason: string;
  readonly message: string;
  /** When the state began, in milliseconds since the epoch. Absent if the state began when the condition was first written. */
  readonly since?: number;
}

interface ConditionInput {
  readonly addresses: readonly string[];
  /** The number of nodes of the Service whose proxy has confirmed all ports of the Service. */
  readonly confirmed: number;
  readonly errors: readonly string[];
  readonly readiness: Readiness;
  readonly reachable: boolean;
  /** Since when all proxies of the Service have been silent, in milliseconds since the epoch; undefined if a proxy is alive. */
  readonly noProxySince: number | undefined;
}

/** Returns the conditions of a Service. Accepted and Programmed are always present, Degraded and Suspended only if they are true. */
export function conditionsFor(
  entry: ServiceEntry,
  facts: ConditionInput,
  suspension: Suspension | undefined,
): Condition[] {
  const accepted = entry.accepted.reason === 'Accepted';
  const conditions: Condition[] = [
    { type: 'Accepted', status: accepted ? 'True' : 'False', ...entry.accepted },
    programmedConditionFor(entry, facts, suspension !== undefined),
  ];
  const degraded = degradedConditionFor(entry, facts);
  if (degraded !== undefined) conditions.push(degraded);
  if (suspension !== undefined) conditions.push(suspendedConditionFor(suspension));
  return conditions.map((condition) => ({ ...condition, message: truncateMessage(condition.message) }));
}

export const FLEET_UNREACHABLE: Condition = {
  type: 'Programmed',
  status: 'Unknown',
  reason: 'FleetUnreachable',
  message:
    'the fleet is unreachable, so it is unknown whether this Service is served; proxies keep serving as before, and Weir retries; if this lasts, ask the operator to check the store',
};

function programmedConditionFor(entry: ServiceEntry, facts: ConditionInput, isSuspended: boolean): Condition {
  const not = (reason: ProgrammedReason, message: string): Condition => ({
    type: 'Programmed',
    status: 'False',
    reason,
    message,
  });
  if (entry.settings === null) return not('NotAccepted', 'nothing is served: see the condition weir.dev/Accepted');
  if (!facts.reachable && facts.addresses.length === 0) {
    return FLEET_UNREACHABLE;
  }
  const noProxy = noProxyReasonFor(entry, facts);
  if (noProxy !== undefined) return { type: 'Programmed', status: 'Unknown', ...noProxy };
  if (facts.addresses.length > 0) {
    const addresses = joinItems(facts.addresses);
    return {
      type: 'Programmed',
      status: 'True',
      reason: 'Programmed',
      message:
        facts.readiness.hasEndpoints && !isSuspended
          ? `served at ${addresses}`
          : `ports are allocated at ${addresses}, but clients are refused while ${isSuspended ? 'the Service is suspended' : 'no endpoint is ready'}`,
    };
  }
  if (entry.nodes.length === 0) return not('NoNodes', noNodesMessage(entry.pool));
  if (facts.errors.length > 0) return not('BindFailed', bindErrorText(facts.errors));
  const proxies = `${entry.nodes.length === 1 ? 'the proxy' : 'the proxies'} of ${joinItems(entry.nodes)}`;
  return not(
    'WaitingForProxy',
    `waiting for ${proxies} to confirm the ports, which takes a moment; if the wait lasts, ask the operator to check the proxies (weir get proxies)`,
  );
}

/** Returns the reason if all proxies of a published Service are silent. Its addresses stay, because they work again with the proxies. */
function noProxyReasonFor(
  { nodes }: ServiceEntry,
  { addresses, noProxySince }: ConditionInput,
): (StatusReason<'NoProxy'> & Pick<Condition, 'since'>) | undefined {
  if (noProxySince === undefined || addresses.length === 0) return undefined;
  const stay = addresses.length === 1 ? 'stays published and works' : 'stay published and work';
  return {
    reason: 'NoProxy',
    message: `no proxy of this Service has sent a heartbeat since ${timestampOf(noProxySince)} (${nodes.length === 1 ? 'node' : 'nodes'} ${joinItems(nodes)}), so it is unknown whether clients are served; ${joinItems(addresses)} ${stay} again when a proxy is back; ask the operator to check the proxies (weir get proxies)`,
    since: noProxySince,
  };
}

function bindErrorText(errors: readonly string[]): string {
  return `${joinSentences(errors)}; Weir retries`;
}

function degradedConditionFor(entry: ServiceEntry, facts: ConditionInput): Condition | undefined {
  if (entry.settings === null) return undefined;
  const found: (StatusReason<DegradedReason> & Pick<Condition, 'since'>)[] = [...entry.degraded];
  const noProxy = noProxyReasonFor(entry, facts);
  if (noProxy !== undefined) found.push(noProxy);
  const { message } = facts.readiness;
  if (message !== null) found.push({ reason: 'NoReadyEndpoints', message });
  // Ignores proxies without heartbeats. Otherwise each restart of a proxy would write the status of every Service on its node.
  if (facts.addresses.length > 0 && facts.errors.length > 0) {
    const effect =
      facts.confirmed > 0
        ? 'some nodes do not serve this Service'
        : 'no node serves all ports of this Service, but its addresses stay published so that clients can reach some ports';
    found.push({ reason: 'FewerNodes', message: `${effect}: ${bindErrorText(facts.errors)}` });
  }
  found.sort((a, b) => DEGRADED_REASONS.indexOf(a.reason) - DEGRADED_REASONS.indexOf(b.reason));
  const mostSevere = found[0];
  const text = joinSentences(found.map((each) => each.message));
  return mostSevere && { type: 'Degraded', status: 'True', ...mostSevere, message: text };
}

function suspendedConditionFor(suspension: Suspension): Condition {
  const message = suspension.message || `cut off by Suspension "${suspension.name}"; ask the operator of the fleet`;
  return {
    type: 'Suspended',
    status: 'True',
    reason: suspension.reason,
    message: `${message} (${suspendedText(suspension)})`,
  };
}

/**
 * The most bytes of a condition's message. This bounds the size of a Service's status, because every client that reads the Service receives
 * the status.
 */
const MAX_MESSAGE_BYTES = 1024;

/** Returns a message of at most 1,024 bytes of UTF-8. Cuts a longer message between two characters and adds an ellipsis. */
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
