import type { Clock, Logger } from '@weir/runtime';
import type { CertificateFault, CertificateFaultReport } from '../protocol/tls-contexts.ts';
import { LOCAL_FAILURES, type LocalFailure, type LocalFailureCounts } from '../upstream/connect-reports.ts';

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

/** So many are remembered as told. */
const MAX_REMEMBERED_FAULTS = 4_096;

const CERTIFICATE_FIXES: Readonly<Record<CertificateFault, string>> = {
  'no-key': 'this proxy is given no private keys: look at what its user of the store may read',
  'key-not-opened': 'controller and proxies must have the same WEIR_FLEET_SECRET',
  'not-accepted': 'look at the Secrets that the Service names: certificate, key and CAs must belong together',
};

/** What certificates cannot be used, told in the log once for all workers. */
export class CertificateFaultLog {
  readonly #log: Pick<Logger, 'warn'>;
  readonly #logged = new Set<string>();

  constructor(log: Pick<Logger, 'warn'>) {
    this.#log = log;
  }

  add({ service, digest, why, code }: CertificateFaultReport): void {
    const key = `${digest} ${why}`;
    if (this.#logged.has(key)) return;
    if (this.#logged.size >= MAX_REMEMBERED_FAULTS) this.#logged.clear();
    this.#logged.add(key);
    const fields = { service, why, ...(code === null ? {} : { code }), advice: CERTIFICATE_FIXES[why] };
    this.#log.warn(fields, 'a certificate cannot be used, and clients are refused');
  }
}
