import type { Clock, Logger } from '@weir/runtime';
import type { CertificateFault, CertificateFaultReport } from '../protocol/tls-contexts.ts';
import { LOCAL_FAILURES, type LocalFailure, type LocalFailureCounts } from '../upstream/connect-reports.ts';

/** The minimum time between two log lines about the same errno. */
const MIN_REPEAT_INTERVAL_MS = 10_000;
const DESCRIPTOR_FIX = 'no descriptor is left; raise the limit of open files (LimitNOFILE, ulimit -n)';
const MEMORY_FIX = 'the kernel has no memory left for sockets; see net.ipv4.tcp_mem';
const PERMISSION_FIX = 'a rule of this host (nftables, SELinux, a cgroup) forbids the connection';

const LOCAL_FAILURE_FIXES: Readonly<Record<LocalFailure, string>> = {
  EADDRNOTAVAIL:
    'no local port is left: net.ipv4.ip_local_port_range limits the connections to one endpoint ' +
    '(28,232 by default); widen the range, or add endpoints',
  EMFILE: DESCRIPTOR_FIX,
  ENFILE: DESCRIPTOR_FIX,
  ENOBUFS: MEMORY_FIX,
  ENOMEM: MEMORY_FIX,
  EPERM: PERMISSION_FIX,
  EACCES: PERMISSION_FIX,
};

/**
 * Logs and counts failed connection attempts of all workers for which this host is the cause. Logs each errno at most
 * every ten seconds. The counts are for metrics.
 */
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
      this.#log.warn(
        { code, count, advice: LOCAL_FAILURE_FIXES[code] },
        'failed to connect to endpoints because of this host',
      );
    }
  }

  /** The number of failed connection attempts since the start, by errno name. */
  get totals(): Readonly<Record<string, number>> {
    return this.#totals;
  }
}

const MAX_LOGGED_FAULTS = 4_096;

const CERTIFICATE_FIXES: Readonly<Record<CertificateFault, string>> = {
  'no-key': 'the store sends no private keys to this proxy; check the permissions of its Redis user',
  'key-not-opened': 'give the controller and the proxies the same WEIR_FLEET_SECRET',
  'not-accepted': 'check the Secrets that the Service names: certificate, key and CAs must belong together',
};

/** Logs each certificate that cannot be used, only once for all workers. */
export class CertificateFaultLog {
  readonly #log: Pick<Logger, 'warn'>;
  readonly #logged = new Set<string>();

  constructor(log: Pick<Logger, 'warn'>) {
    this.#log = log;
  }

  add({ service, digest, why, code }: CertificateFaultReport): void {
    const key = `${digest} ${why}`;
    if (this.#logged.has(key)) return;
    if (this.#logged.size >= MAX_LOGGED_FAULTS) this.#logged.clear();
    this.#logged.add(key);
    const fields = { service, why, ...(code === null ? {} : { code }), advice: CERTIFICATE_FIXES[why] };
    this.#log.warn(fields, 'a certificate cannot be used; the proxy refuses clients that need this certificate');
  }
}
