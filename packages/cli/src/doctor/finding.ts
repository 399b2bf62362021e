import { type UnknownFact, unknownFact } from './facts.ts';

/** What one check found; also when all is well. */
export interface Finding {
  readonly code: CheckCode;
  readonly severity: Severity;
  /** What was looked at. */
  readonly subject: string;
  /** What is so; of what is wrong: what, where, and what to do. */
  readonly message: string;
}

export type Severity = 'ok' | 'warning' | 'error';

/** Every check, in the order in which they are told; each gives one finding. */
export const CHECK_CODES = [
  'KubernetesVersion',
  'CustomResources',
  'ServiceRanges',
  'ControllerLeader',
  'LoadBalancingNodes',
  'NodesLeftOut',
  'NodeAddresses',
  'NodePools',
  'ProxySourceAddresses',
  'PublishedAddresses',
  'NodePorts',
  'EphemeralPorts',
  'UntakenServices',
  'ApiServerClock',
  'RedisReachable',
  'RedisVersion',
  'RedisEviction',
  'RedisPersistence',
  'RedisClock',
  'ProxiesAlive',
  'ProxyVersions',
  'ProxyPorts',
  'ProxyClocks',
  'KernelSettings',
] as const;

export type CheckCode = (typeof CHECK_CODES)[number];
/** The verdict of a check, without what is the same in all of them. */
export type CheckResult = Pick<Finding, 'severity' | 'message'>;

export function ok(message: string): CheckResult {
  return { severity: 'ok', message };
}

export function warning(message: string): CheckResult {
  return { severity: 'warning', message };
}

export function error(message: string): CheckResult {
  return { severity: 'error', message };
}

/** What is not known is no error of its own: the check that stands for what does not answer says that. */
export function notChecked({ message }: UnknownFact): CheckResult {
  return warning(`not checked: ${message}`);
}

/** That somebody does not answer is told once, by the check that stands for it. */
export const API_SERVER_UNAVAILABLE: UnknownFact = unknownFact(
  'failed',
  'the API server cannot be asked (KubernetesVersion)',
);

export const REDIS_UNAVAILABLE: UnknownFact = unknownFact('failed', 'Redis cannot be asked (RedisReachable)');

const MAX_LISTED_ITEMS = 10;

/** `a, b and 12 more`: a cluster has more of everything than a line can hold. */
export function joinList(items: readonly string[], most: number = MAX_LISTED_ITEMS): string {
  if (items.length <= most) return items.join(', ');
  return `${items.slice(0, most).join(', ')} and ${items.length - most} more`;
}

/** `1 node`, `2 nodes`. */
export function pluralize(count: number, noun: string): string {
  return `${count} ${noun}${count === 1 ? '' : 's'}`;
}
