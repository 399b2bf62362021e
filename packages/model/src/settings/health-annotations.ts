// The annotations `weir.dev/health-check` and `weir.dev/health-check-…`. A Service with an option but without a check is refused, because
// the option would have no effect.
import { DURATION_PATTERN, parseDuration } from '../duration.ts';
import { healthCheckName } from '../health/port-health.ts';
import {
  type Annotation,
  durationAnnotation,
  integerAnnotation,
  oneOfAnnotation,
  pattern,
} from './annotation-grammar.ts';
import {
  DEFAULT_HEALTH_TIMING,
  type HealthCheckName,
  type HealthCheckSettings,
  type HealthCheckTiming,
  type ServiceSettings,
} from './service-settings.ts';

const MIN_INTERVAL_MS = 1_000;
const MAX_INTERVAL_MS = 600_000;
const MAX_DRAIN_TIMEOUT_MS = 86_400_000;
const MAX_THRESHOLD_RESULTS = 10;
const MAX_PATH_LENGTH = 1_024;

/**
 * The health annotations. They are parsed in this order, because the options depend on the check, and the timeout depends on the interval.
 */
export const HEALTH_ANNOTATIONS: Readonly<Record<string, Annotation>> = {
  'health-check': oneOfAnnotation<HealthCheckName>(['off', 'tcp', 'http', 'https', 'grpc'], (name) => ({
    healthCheck: defaultCheck(name),
  })),
  'health-check-path': pathAnnotation(),
  'health-check-interval': withCheck(
    durationAnnotation(
      { minMs: MIN_INTERVAL_MS, maxMs: MAX_INTERVAL_MS, expected: 'a duration from 1s to 10m' },
      // The default timeout must not exceed the interval. `timeoutAnnotation` checks a timeout that the user sets.
      (intervalMs, { healthCheck }) =>
        withTiming(healthCheck, { intervalMs, timeoutMs: Math.min(timingOf(healthCheck).timeoutMs, intervalMs) }),
    ),
  ),
  'health-check-timeout': withCheck(timeoutAnnotation()),
  'health-check-healthy': withCheck(threshold((healthyThreshold) => ({ healthyThreshold }))),
  'health-check-unhealthy': withCheck(threshold((unhealthyThreshold) => ({ unhealthyThreshold }))),
  'health-check-drain-timeout': withCheck(
    durationAnnotation({ maxMs: MAX_DRAIN_TIMEOUT_MS }, (drainTimeoutMs, { healthCheck }) =>
      withTiming(healthCheck, { drainTimeoutMs }),
    ),
  ),
};

function defaultCheck(name: HealthCheckName): HealthCheckSettings {
  switch (name) {
    case 'off':
      return { kind: 'off' };
    case 'tcp':
      return { kind: 'tcp', ...DEFAULT_HEALTH_TIMING };
    case 'http':
      return { kind: 'http', path: '/', ...DEFAULT_HEALTH_TIMING };
    case 'https':
      return { kind: 'http', path: '/', overTls: true, ...DEFAULT_HEALTH_TIMING };
    case 'grpc':
      return { kind: 'tcp', grpcService: '', ...DEFAULT_HEALTH_TIMING };
  }
}

function timingOf(check: HealthCheckSettings): HealthCheckTiming {
  return check.kind === 'off' ? DEFAULT_HEALTH_TIMING : check;
}

function withTiming(
  check: HealthCheckSettings,
  timing: Partial<HealthCheckTiming>,
): Pick<ServiceSettings, 'healthCheck'> {
  return { healthCheck: check.kind === 'off' ? check : { ...check, ...timing } };
}

/**
 * Returns the annotation for the path. A path may have the characters that a request line allows: no blanks, no control characters, and no
 * fragment (`#`), because clients never send a fragment to a server. For a gRPC check the path is a slash and the name of a service.
 */
function pathAnnotation(): Annotation {
  const { grammar, parse } = pattern(
    {
      pattern: '^/[!-"$-~]*$',
      maxLength: MAX_PATH_LENGTH,
      expected: `a path such as /healthz: it begins with /, and has no blanks and at most ${MAX_PATH_LENGTH} characters`,
    },
    (path, { healthCheck }) => {
      if (healthCheck.kind === 'http') return { healthCheck: { ...healthCheck, path } };
      return healthCheck.kind === 'tcp' ? { healthCheck: { ...healthCheck, grpcService: path.slice(1) } } : {};
    },
  );
  return {
    grammar,
    parse: (value, settings) =>
      ['http', 'https', 'grpc'].includes(healthCheckName(settings.healthCheck))
        ? parse(value, settings)
        : 'can be honoured only with weir.dev/health-check: http, https or grpc; add that annotation, or remove this one',
  };
}

function timeoutAnnotation(): Annotation {
  return {
    grammar: {
      kind: 'duration',
      pattern: DURATION_PATTERN,
      minMs: 1,
      maxMs: MAX_INTERVAL_MS,
      expected: 'a duration from 1ms to weir.dev/health-check-interval',
    },
    parse: (value, { healthCheck }) => {
      const { intervalMs } = timingOf(healthCheck);
      const timeoutMs = parseDuration(value);
      return timeoutMs === undefined || timeoutMs < 1 || timeoutMs > intervalMs
        ? `is not allowed; use a duration from 1ms to weir.dev/health-check-interval, which is ${intervalMs / 1_000}s`
        : withTiming(healthCheck, { timeoutMs });
    },
  };
}

function withCheck({ grammar, parse }: Annotation): Annotation {
  return {
    grammar,
    parse: (value, settings) =>
      settings.healthCheck.kind === 'off'
        ? 'can be honoured only with weir.dev/health-check: tcp, http, https or grpc; add that annotation, or remove this one'
        : parse(value, settings),
  };
}

function threshold(timing: (count: number) => Partial<HealthCheckTiming>): Annotation {
  return integerAnnotation({ min: 1, max: MAX_THRESHOLD_RESULTS }, (count, { healthCheck }) =>
    withTiming(healthCheck, timing(count)),
  );
}
