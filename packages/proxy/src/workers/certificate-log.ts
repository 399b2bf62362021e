import type { Logger } from '@weir/runtime';
import type { CertificateFault, CertificateFaultReport } from '../tls/secure-contexts.ts';

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
