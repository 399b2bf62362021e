import type { HealthCheck } from '../settings/service-settings.ts';

/** As in the annotation `weir.dev/health-check`. */
export function healthCheckName(check: HealthCheck): 'off' | 'tcp' | 'http' | 'https' {
  return check.kind === 'http' && check.overTls === true ? 'https' : check.kind;
}
