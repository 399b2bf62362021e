import type { Logger } from '@weir/runtime';
import type { CertificateFault, CertificateNews } from '../tls/secure-contexts.ts';

/** So many are remembered as told. */
const MOST_TOLD = 4_096;

const ADVICE: Readonly<Record<CertificateFault, string>> = {
  'no-key': 'this proxy is given no private keys: look at what its user of the store may read',
  'key-not-opened': 'controller and proxies must have the same WEIR_FLEET_SECRET',
  'not-accepted': 'look at the Secrets that the Service names: certificate, key and CAs must belong together',
};

/** What certificates cannot be used, told in the log once for all workers. */
export class CertificateLog {
  readonly #log: Pick<Logger, 'warn'>;
  readonly #told = new Set<string>();

  constructor(log: Pick<Logger, 'warn'>) {
    this.#log = log;
  }

  take({ service, digest, why, code }: CertificateNews): void {
    const key = `${digest} ${why}`;
    if (this.#told.has(key)) return;
    if (this.#told.size >= MOST_TOLD) this.#told.clear();
    this.#told.add(key);
    const fields = { service, why, ...(code === null ? {} : { code }), advice: ADVICE[why] };
    this.#log.warn(fields, 'a certificate cannot be used, and clients are refused');
  }
}
