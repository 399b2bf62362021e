import type { Clock, Logger } from '@weir/runtime';
import { LOCAL_FAILURES, type LocalFailure, type LocalFailureCounts } from '../relay/local-failures.ts';

/** The same is not told again sooner. */
const MIN_REPEAT_INTERVAL_MS = 10_000;
const DESCRIPTOR_FIX = 'no descriptor is left; raise the limit of open files (LimitNOFILE, ulimit -n)';
const MEMORY_FIX = 'the kernel has no memory left for sockets; see net.ipv4.tcp_mem';
const PERMISSION_FIX = 'a rule of this host (nftables, SELinux, a cgroup) forbids it';

const LOCAL_FAILURE_FIXES: Readonly<Record<LocalFailure, string>> = {
  EADDRNOTAVAIL:
    'no local port is left: from one address there can be only as many connections to one endpoint as ' +
    'net.ipv4.ip_local_port_range has ports (28,232 by default); widen it, or add endpoints',
  EMFILE: DESCRIPTOR_FIX,
  ENFILE: DESCRIPTOR_FIX,
  ENOBUFS: MEMORY_FIX,
  ENOMEM: MEMORY_FIX,
  EPERM: PERMISSION_FIX,
  EACCES: PERMISSION_FIX,
};

/** What all workers together could not connect for reasons of this host: told in the log now and then, and kept for metrics. */
export class LocalFailureLog {
  readonly #log: Logger;
  readonly #clock: Pick<Clock, 'monotonic'>;
  readonly #totals: Record<string, number> = {};
  readonly #loggedAt = new Map<LocalFailure, number>();

  constructor({ log, clock }: { readonly log: Logger; readonly clock: Pick<Clock, 'monotonic'> }) {
    this.#log = log;
    this.#clock = clock;
  }

  add(counts: LocalFailureCounts): void {
    const now = this.#clock.monotonic();
    for (const code of LOCAL_FAILURES) {
      const count = counts[code] ?? 0;
      if (count === 0) continue;
      this.#totals[code] = (this.#totals[code] ?? 0) + count;
      if (now - (this.#loggedAt.get(code) ?? Number.NEGATIVE_INFINITY) < MIN_REPEAT_INTERVAL_MS) continue;
      this.#loggedAt.set(code, now);
      this.#log.warn({ code, count, advice: LOCAL_FAILURE_FIXES[code] }, 'this host could not connect to endpoints');
    }
  }

  /** By code, since the start. */
  get totals(): Readonly<Record<string, number>> {
    return this.#totals;
  }
}
