import { type UnknownFact, unknownFact } from './facts.ts';

/** The result of one check, including a check that found no problem. */
export interface Finding {
  readonly code: CheckCode;
  readonly severity: Severity;
  /** The object that was checked. */
  readonly subject: string;
  /** The result as text. If there is a problem, the text says what is wrong, where, and what to do. */
  readonly message: string;
}

export type Severity = 'ok' | 'warning' | 'error';

/** Every check, in the order of the output. Each check gives one finding. */
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
  'RedisMemory',
  'RedisPersistence',
  'RedisClock',
  'ProxiesAlive',
  'ProxyVersions',
  'ProxyPorts',
  'ProxyClocks',
  'KernelSettings',
] as const;

export type CheckCode = (typeof CHECK_CODES)[number];
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

/**
 * Returns a warning for a missing fact. A warning suffices, because `KubernetesVersion` or `RedisReachable` already reports the cause as an
 * error.
 */
export function notChecked({ message }: UnknownFact): CheckResult {
  return warning(`not checked: ${message}`);
}

export const API_SERVER_UNAVAILABLE: UnknownFact = unknownFact(
  'failed',
  'the API server cannot be queried (see KubernetesVersion)',
);

export const REDIS_UNAVAILABLE: UnknownFact = unknownFact('failed', 'Redis cannot be queried (see RedisReachable)');
