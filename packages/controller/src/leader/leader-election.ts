import { type Clock, createLoop, errorMessage, type Logger, type Loop, type Timer } from '@weir/runtime';
import type { Json, KubeApi } from '../kubernetes/kube-api.ts';
import { KubeApiError } from '../kubernetes/kube-api-error.ts';
import type { Leadership } from './leadership.ts';

export interface LeaderElectorOptions {
  readonly api: Pick<KubeApi, 'request'>;
  readonly namespace: string;
  readonly name: string;
  /** Of this process, among all that stand for election. */
  readonly identity: string;
  readonly clock: Clock;
  readonly log: Logger;
}

export function startLeaderElection(options: LeaderElectorOptions): LeaderElector {
  const election = new LeaderElector(options);
  election.start();
  return election;
}

interface Lease {
  readonly spec: LeaseSpec;
  readonly resourceVersion: string | undefined;
}

export class LeaderElector implements Leadership {
  readonly #options: LeaderElectorOptions;
  readonly #listeners = new Set<() => void>();
  readonly #loop: Loop;
  /** Never rejects. */
  #lastRound: Promise<void> = Promise.resolve();
  #observedLease: ObservedLease | undefined;
  #isLeader = false;
  /** On a clock that never jumps. */
  #leaderUntil = Number.NEGATIVE_INFINITY;
  /** Ends the lead in time, whatever requests are under way: an API server that hangs answers too late to tell. */
  #deadline: Timer | undefined;
  #holder: string | undefined;

  constructor(options: LeaderElectorOptions) {
    this.#options = options;
    const { clock, log } = options;
    this.#loop = createLoop({
      gapMs: 10,
      resyncMs: RETRY_PERIOD_MS,
      retryMs: [RETRY_PERIOD_MS / 4, RETRY_PERIOD_MS],
      clock,
      run: () => this.#runRoundExclusively(),
      onError: (error, { failures }) => {
        if (failures > 1) return;
        const isMissing = error instanceof KubeApiError && error.code === 'NOT_FOUND';
        const todo = isMissing ? 'create its namespace, or name another by WEIR_NAMESPACE' : undefined;
        log.warn({ reason: errorMessage(error), todo }, 'the Lease cannot be read or written; it is tried again');
      },
    });
  }

  /** By the clock: of a process that was stopped for a minute answers are handled before its timers are. */
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
    // When it fails the next one waits out the Lease.
    await this.#release().catch(() => undefined);
  }

  /** Of two rounds at once the one that loses to the other would give up the lead that it won. */
  #runRoundExclusively(): Promise<void> {
    const round = this.#lastRound.then(() => this.#round());
    this.#lastRound = round.catch(() => undefined);
    return round;
  }

  async #round(): Promise<void> {
    const { clock, identity, log } = this.#options;
    const startedAt = clock.monotonic();
    // Whoever listens hears that it was lost, also when it is won again before the timer has run.
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
      // Somebody was faster: the next round sees who.
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

// Leader election by a Lease of coordination.k8s.io/v1, as kube-controller-manager does it: whoever holds it renews it; who sees it
// unchanged for its whole duration, by the own clock, may take it. Clocks of different machines are never compared.
export const LEASE_DURATION_MS = 15_000;
/** A holder that could not renew for so long leads no more: before anybody else may. */
export const RENEW_DEADLINE_MS = 10_000;
export const RETRY_PERIOD_MS = 2_000;

/** The spec of a Lease, as far as it is read. */
export interface LeaseSpec {
  readonly holderIdentity?: string | null;
  readonly leaseDurationSeconds?: number | null;
  readonly acquireTime?: string | null;
  readonly renewTime?: string | null;
  readonly leaseTransitions?: number | null;
}

/** A Lease as we know it. */
export interface ObservedLease {
  readonly spec: LeaseSpec;
  /** When we first saw it just so, on a clock that never jumps. */
  readonly since: number;
}

export type ElectionStep =
  | { readonly kind: 'create' | 'take' | 'renew'; readonly spec: LeaseSpec }
  /** Somebody else holds it. */
  | { readonly kind: 'wait'; readonly holder: string };

/** The same observation when the Lease has not changed, else a new one. */
export function observeLease(previous: ObservedLease | undefined, spec: LeaseSpec, monotonic: number): ObservedLease {
  const isSame =
    previous !== undefined &&
    previous.spec.holderIdentity === spec.holderIdentity &&
    previous.spec.renewTime === spec.renewTime &&
    previous.spec.acquireTime === spec.acquireTime;
  return isSame ? previous : { spec, since: monotonic };
}

export interface ElectionInput {
  readonly identity: string;
  /** Milliseconds since the epoch, for what is written. */
  readonly now: number;
  readonly monotonic: number;
}

/** What to do about a Lease; undefined: there is none. */
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

/** What a holder leaves behind when it goes: the next one need not wait. */
export function releasedLease(spec: LeaseSpec, now: number): LeaseSpec {
  return { ...spec, holderIdentity: '', leaseDurationSeconds: 1, renewTime: microTime(now) };
}

/** metav1.MicroTime. */
export function microTime(ms: number): string {
  return new Date(ms).toISOString().replace('Z', '000Z');
}
