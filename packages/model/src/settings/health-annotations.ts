// The annotations `weir.dev/health-check` and `weir.dev/health-check-…`. An option without a check is refused, since it would do
// nothing.
import { parseDuration } from './quantity.ts';
import {
  DEFAULT_HEALTH_TIMING,
  type HealthCheck,
  type HealthCheckTiming,
  type ServiceSettings,
} from './service-settings.ts';

/** Part of the settings, after those parsed before; or what is wrong. */
type ParseValue = (value: string, settings: ServiceSettings) => Pick<ServiceSettings, 'healthCheck'> | string;
type Check = Exclude<HealthCheck, { readonly kind: 'off' }>;

const MIN_INTERVAL_MS = 1_000;
const MAX_INTERVAL_MS = 600_000;
const MAX_DRAIN_TIMEOUT_MS = 86_400_000;
const MAX_THRESHOLD_RESULTS = 10;
const MAX_PATH_LENGTH = 1_024;
/** Characters that a request line can carry: no blanks, no control characters, and no fragment, which servers never receive. */
const PATH = /^\/[!-"$-~]*$/;

/** In the order in which they build on another. */
export const HEALTH_ANNOTATIONS: Readonly<Record<string, ParseValue>> = {
  'health-check': parseCheck,
  'health-check-path': parsePath,
  'health-check-interval': withCheck((value, check) => {
    const intervalMs = parseDuration(value);
    if (intervalMs === undefined || intervalMs < MIN_INTERVAL_MS || intervalMs > MAX_INTERVAL_MS)
      return 'is not allowed; use a duration from 1s to 10m';
    // A default timeout must not exceed the interval. A timeout from its own annotation is checked below.
    return { intervalMs, timeoutMs: Math.min(check.timeoutMs, intervalMs) };
  }),
  'health-check-timeout': withCheck((value, { intervalMs }) => {
    const timeoutMs = parseDuration(value);
    return timeoutMs === undefined || timeoutMs < 1 || timeoutMs > intervalMs
      ? `is not allowed; use a duration from 1ms to the interval, which is ${intervalMs / 1_000}s`
      : { timeoutMs };
  }),
  'health-check-healthy': withCheck(threshold((healthyThreshold) => ({ healthyThreshold }))),
  'health-check-unhealthy': withCheck(threshold((unhealthyThreshold) => ({ unhealthyThreshold }))),
  'health-check-drain-timeout': withCheck((value) => {
    const drainTimeoutMs = parseDuration(value);
    return drainTimeoutMs === undefined || drainTimeoutMs < 1 || drainTimeoutMs > MAX_DRAIN_TIMEOUT_MS
      ? `is not allowed; use a duration from 1ms to ${MAX_DRAIN_TIMEOUT_MS / 1_000}s, such as 5s or 10m`
      : { drainTimeoutMs };
  }),
};

function parseCheck(value: string): ReturnType<ParseValue> {
  switch (value) {
    case 'off':
      return { healthCheck: { kind: 'off' } };
    case 'tcp':
      return { healthCheck: { kind: 'tcp', ...DEFAULT_HEALTH_TIMING } };
    case 'http':
      return { healthCheck: { kind: 'http', path: '/', ...DEFAULT_HEALTH_TIMING } };
    case 'https':
      return { healthCheck: { kind: 'http', path: '/', overTls: true, ...DEFAULT_HEALTH_TIMING } };
    default:
      return 'is not allowed; use one of off, tcp, http, https';
  }
}

function parsePath(path: string, { healthCheck }: ServiceSettings): ReturnType<ParseValue> {
  if (healthCheck.kind !== 'http')
    return 'can be honoured only with weir.dev/health-check: http or https; add that annotation, or remove this one';
  return PATH.test(path) && path.length <= MAX_PATH_LENGTH
    ? { healthCheck: { ...healthCheck, path } }
    : `is not allowed; use a path such as /healthz: it begins with /, and has no blanks and at most ${MAX_PATH_LENGTH} characters`;
}

function withCheck(parse: (value: string, check: Check) => Partial<HealthCheckTiming> | string): ParseValue {
  return (value, { healthCheck }) => {
    if (healthCheck.kind === 'off')
      return 'can be honoured only with weir.dev/health-check: tcp, http or https; add that annotation, or remove this one';
    const timing = parse(value, healthCheck);
    return typeof timing === 'string' ? timing : { healthCheck: { ...healthCheck, ...timing } };
  };
}

function threshold(
  timing: (count: number) => Partial<HealthCheckTiming>,
): (value: string) => ReturnType<typeof timing> | string {
  return (value) =>
    /^[0-9]{1,2}$/.test(value) && Number(value) >= 1 && Number(value) <= MAX_THRESHOLD_RESULTS
      ? timing(Number(value))
      : `is not allowed; use a number from 1 to ${MAX_THRESHOLD_RESULTS}`;
}
