import { errorMessage } from './errors.ts';

/** `live`: only a restart helps. `ready`: keep work away until it is over. */
export type HealthKind = 'live' | 'ready';

/** Undefined when all is well, else the reason in words. Looks at what is known already: it may be called every second. */
export type HealthCheck = () => string | undefined;

export interface HealthReport {
  readonly live: boolean;
  /** Never true when `live` is false. */
  readonly ready: boolean;
  readonly reasons: readonly { readonly check: string; readonly affects: HealthKind; readonly reason: string }[];
}

export interface Health {
  /** Adds a check; the function that comes back takes it away. A name that exists already is a bug. */
  add(name: string, affects: HealthKind, check: HealthCheck): () => void;
  report(): HealthReport;
}

export function createHealth(): Health {
  const checks = new Map<string, { readonly affects: HealthKind; readonly check: HealthCheck }>();
  return {
    add(name, affects, check) {
      if (checks.has(name)) throw new Error(`health check "${name}" exists already`);
      checks.set(name, { affects, check });
      return () => void checks.delete(name);
    },
    report() {
      const reasons = [...checks].flatMap(([name, { affects, check }]) => {
        const reason = runCheck(check);
        return reason === undefined ? [] : [{ check: name, affects, reason }];
      });
      return { live: reasons.every(({ affects }) => affects !== 'live'), ready: reasons.length === 0, reasons };
    },
  };
}

/** A check that throws cannot say that all is well. */
function runCheck(check: HealthCheck): string | undefined {
  try {
    return check();
  } catch (error) {
    return errorMessage(error);
  }
}
