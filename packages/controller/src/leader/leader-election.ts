import { type Clock, errorMessage, type Logger, Loop, type Timer } from '@weir/runtime';
import type { Json, KubeApi } from '../kubernetes/kube-api.ts';
import { KubeApiError } from '../kubernetes/kube-api-error.ts';
import type { Leadership } from './leadership.ts';

export interface LeaderElectorOptions {
  readonly api: Pick<KubeApi, 'request'>;
  readonly namespace: string;
  readonly name: string;
  /** The name of this process in the Lease. Each replica has a different name. */
  readonly identity: string;
  readonly clock: Clock;
  readonly log: Logger;
}

export function startLeaderElection(options: LeaderElectorOptions): Leadership {
  const election = new LeaderElector(options);
  election.start();
  return election;
}

interface Lease {
  readonly spec: LeaseSpec;
  readonly resourceVersion: string | undefined;
}

class LeaderElector implements Leadership {
  readonly #options: LeaderElectorOptions;
  readonly #listeners = new Set<() => void>();
  readonly #loop: Loop;
  /** Resolves when the last round has ended; never rejects. */
  #lastRound: Promise<void> = Promise.resolve();
  #observedLease: ObservedLease | undefined;
  #isLeader = false;
  /** The time at which leadership ends unless the Lease is renewed, in milliseconds of the monotonic clock. */
  #leaderUntil = Number.NEGATIVE_INFINITY;
  /** Ends leadership in time even if a request to the API server hangs. */
  #deadline: Timer | undefined;
  #holder: string | undefined;

  constructor(options: LeaderElectorOptions) {
    this.#options = options;
    const { clock, log } = options;
    this.#loop = new Loop({
      gapMs: 10,
      resyncMs: RETRY_PERIOD_MS,
      retryMs: [RETRY_PERIOD_MS / 4, RETRY_PERIOD_MS],
      clock,
      run: () => this.#runRoundExclusively(),
      onError: (error, { failures }) => {
        if (failures > 1) return;
        const isMissing = error instanceof KubeApiError && error.code === 'NOT_FOUND';
        const todo = isMissing
          ? 'create the namespace of the Lease, or set WEIR_NAMESPACE to another namespace'
          : undefined;
        log.warn({ reason: errorMessage(error), todo }, 'failed to read or write the Lease; retrying');
      },
    });
  }

  /**
   * Whether this controller leads. Also checks the clock, because a process that was stopped for a minute may handle responses before the
   * timer `#deadline` runs.
   */
  get isLeader(): boolean {
    return this.#isLeader && this.#options.clock.monotonic() < this.#leaderUntil;
  }

  start(): void {
    this.#loop.trigger();
  }

  onChange(listener: () => void): () => void {
    this.#listeners.add(listener);
    return () => void this.#listeners.delete(listener);
  }

  async recheck(): Promise<void> {
    await this.#runRoundExclusively().catch(() => this.#setLeader(false));
  }

  async close(): Promise<void> {
    await this.#loop.close();
    await this.#lastRound;
    this.#deadline?.cancel();
    this.#listeners.clear();
    if (!this.isLeader) return;
    this.#isLeader = false;
    await this.#release().catch((error: unknown) => {
      const { log } = this.#options;
      log.warn({ reason: errorMessage(error) }, 'failed to release the Lease; the next leader waits until it expires');
    });
  }

  /**
   * Runs a round after the last round has ended. If two rounds ran at once, their writes would conflict, and the second round would
   * give up the leadership that the first round has won.
   */
  #runRoundExclusively(): Promise<void> {
    const round = this.#lastRound.then(() => this.#round());
    this.#lastRound = round.catch(() => undefined);
    return round;
  }

  async #round(): Promise<void> {
    const { clock, identity, log } = this.#options;
    const startedAt = clock.monotonic();
    // Reports a loss of leadership to the listeners before this round can win the election again, because the timer `#deadline` may
    // not have run yet.
    if (!this.isLeader) this.#setLeader(false);
    const lease = await this.#read();
    this.#observedLease = lease && observeLease(this.#observedLease, lease.spec, clock.monotonic());
    const step = planElection(this.#observedLease, { identity, now: clock.now(), monotonic: clock.monotonic() });
    if (step.kind === 'wait') {
      if (step.holder !== this.#holder) log.info({ leader: step.holder }, 'another controller leads');
      this.#holder = step.holder;
      return this.#setLeader(false);
    }
    try {
      await this.#write(step.kind === 'create' ? 'POST' : 'PUT', step.spec, lease?.resourceVersion);
    } catch (error) {
      if (!(error instanceof KubeApiError && error.code === 'CONFLICT')) throw error;
      // Another controller has written the Lease first. The next round reads the name of that controller.
      if (step.kind !== 'renew') this.#setLeader(false);
      return;
    }
    this.#holder = identity;
    this.#observedLease = { spec: step.spec, since: clock.monotonic() };
    this.#extendLeadership(startedAt);
  }

  #extendLeadership(renewedAt: number): void {
    const { clock } = this.#options;
    this.#deadline?.cancel();
    this.#leaderUntil = renewedAt + RENEW_DEADLINE_MS;
    const leftMs = this.#leaderUntil - clock.monotonic();
    this.#deadline = clock.setTimeout(() => this.#setLeader(false), leftMs);
    this.#setLeader(leftMs > 0);
  }

  #setLeader(isLeader: boolean): void {
    if (this.#isLeader === isLeader) return;
    this.#isLeader = isLeader;
    this.#options.log.info(isLeader ? 'elected' : 'no longer elected');
    for (const listener of this.#listeners) listener();
  }

  get #path(): string {
    return `/apis/coordination.k8s.io/v1/namespaces/${this.#options.namespace}/leases`;
  }

  async #read(): Promise<Lease | undefined> {
    const { api, name } = this.#options;
    try {
      const lease = await api.request({ method: 'GET', path: `${this.#path}/${name}`, timeoutMs: RETRY_PERIOD_MS * 2 });
      const { resourceVersion } = lease.metadata as { resourceVersion?: string };
      return { spec: (lease.spec ?? {}) as LeaseSpec, resourceVersion };
    } catch (error) {
      if (error instanceof KubeApiError && error.code === 'NOT_FOUND') return undefined;
      throw error;
    }
  }

  async #write(method: 'POST' | 'PUT', spec: LeaseSpec, resourceVersion: string | undefined): Promise<Json> {
    const { api, name, namespace } = this.#options;
    const path = method === 'POST' ? this.#path : `${this.#path}/${name}`;
    const metadata = { name, namespace, ...(resourceVersion !== undefined && { resourceVersion }) };
    const body = { apiVersion: 'coordination.k8s.io/v1', kind: 'Lease', metadata, spec };
    return api.request({ method, path, body, timeoutMs: RETRY_PERIOD_MS * 2 });
  }

  async #release(): Promise<void> {
    const { identity, clock } = this.#options;
    const lease = await this.#read();
    if (lease?.spec.holderIdentity !== identity) return;
    await this.#write('PUT', releasedLease(lease.spec, clock.now()), lease.resourceVersion);
  }
}

// The leader is elected by a Lease of coordination.k8s.io/v1, as in kube-controller-manager. The holder renews the Lease. Another
// controller may take a Lease that has not changed for its whole duration, measured by the clock of that controller. Clocks of
// different machines are never compared.
export const LEASE_DURATION_MS = 15_000;
/**
 * How long a holder leads after its last renewal. This is shorter than `LEASE_DURATION_MS`, so that the holder stops leading before
 * another controller may take the Lease.
 */
export const RENEW_DEADLINE_MS = 10_000;
export const RETRY_PERIOD_MS = 2_000;

/** The fields of a Lease's `spec` that the election reads. */
export interface LeaseSpec {
  readonly holderIdentity?: string | null;
  readonly leaseDurationSeconds?: number | null;
  readonly acquireTime?: string | null;
  readonly renewTime?: string | null;
  readonly leaseTransitions?: number | null;
}

export interface ObservedLease {
  readonly spec: LeaseSpec;
  /** When this spec was first seen, in milliseconds of the monotonic clock. */
  readonly since: number;
}

export type ElectionStep =
  | { readonly kind: 'create' | 'take' | 'renew'; readonly spec: LeaseSpec }
  /** Another controller holds the Lease. */
  | { readonly kind: 'wait'; readonly holder: string };

/** Returns the previous observation if the Lease has not changed, otherwise a new observation. */
export function observeLease(previous: ObservedLease | undefined, spec: LeaseSpec, monotonic: number): ObservedLease {
  const isUnchanged =
    previous !== undefined &&
    previous.spec.holderIdentity === spec.holderIdentity &&
    previous.spec.renewTime === spec.renewTime &&
    previous.spec.acquireTime === spec.acquireTime;
  return isUnchanged ? previous : { spec, since: monotonic };
}

export interface ElectionInput {
  readonly identity: string;
  /** The current time in milliseconds since the epoch, for the times in the Lease. */
  readonly now: number;
  readonly monotonic: number;
}

/** Decides whether to create, take or renew the Lease, or to wait. `observation` is undefined if there is no Lease. */
export function planElection(
  observation: ObservedLease | undefined,
  { identity, now, monotonic }: ElectionInput,
): ElectionStep {
  const time = microTime(now);
  const mine = { holderIdentity: identity, leaseDurationSeconds: LEASE_DURATION_MS / 1000, renewTime: time };
  if (observation === undefined) return { kind: 'create', spec: { ...mine, acquireTime: time, leaseTransitions: 0 } };
  const { spec, since } = observation;
  const holder = spec.holderIdentity ?? '';
  const leaseTransitions = spec.leaseTransitions ?? 0;
  if (holder === identity) {
    return { kind: 'renew', spec: { ...mine, acquireTime: spec.acquireTime ?? time, leaseTransitions } };
  }
  const leaseMs = (spec.leaseDurationSeconds ?? LEASE_DURATION_MS / 1000) * 1000;
  if (holder !== '' && monotonic - since < leaseMs) return { kind: 'wait', holder };
  return { kind: 'take', spec: { ...mine, acquireTime: time, leaseTransitions: leaseTransitions + 1 } };
}

/** Returns the spec that a holder writes when it stops, so that the next leader need not wait until the Lease expires. */
export function releasedLease(spec: LeaseSpec, now: number): LeaseSpec {
  return { ...spec, holderIdentity: '', leaseDurationSeconds: 1, renewTime: microTime(now) };
}

/** Formats milliseconds since the epoch as metav1.MicroTime. */
export function microTime(ms: number): string {
  return new Date(ms).toISOString().replace('Z', '000Z');
}
