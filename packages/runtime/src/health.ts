import { errorMessage } from './errors.ts';

/**
 * The effect of a failed check: `live` means that the process needs a restart, and `ready` that it must get no traffic
 * for now.
 */
export type HealthKind = 'live' | 'ready';

/** Returns undefined if healthy, otherwise the reason. Must be cheap, because probes call the check every second. */
export type HealthCheck = () => string | undefined;

export interface HealthReport {
  readonly live: boolean;
  /** Always false if `live` is false. */
  readonly ready: boolean;
  readonly reasons: readonly { readonly check: string; readonly affects: HealthKind; readonly reason: string }[];
}

/** The health checks of a process. */
export class Health {
  readonly #checks = new Map<string, { readonly affects: HealthKind; readonly check: HealthCheck }>();

  /** Adds a check and returns a function that removes the check. Throws if the name is in use. */
  add(name: string, affects: HealthKind, check: HealthCheck): () => void {
    if (this.#checks.has(name)) throw new Error(`health check "${name}" already exists`);
    this.#checks.set(name, { affects, check });
    return () => void this.#checks.delete(name);
  }

  /** Runs all checks and returns the result. */
  report(): HealthReport {
    const reasons = [...this.#checks].flatMap(([name, { affects, check }]) => {
      const reason = runCheck(check);
      return reason === undefined ? [] : [{ check: name, affects, reason }];
    });
    return { live: reasons.every(({ affects }) => affects !== 'live'), ready: reasons.length === 0, reasons };
  }
}

/** Runs a check. If the check throws, it counts as failed. */
function runCheck(check: HealthCheck): string | undefined {
  try {
    return check();
  } catch (error) {
    return errorMessage(error);
  }
}
