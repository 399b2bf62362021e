// The certificate of a server, in a directory as the kubelet mounts a Secret: it replaces both files at any moment, by swapping a symlink.
import { readFileSync, statSync } from 'node:fs';
import type { Server } from 'node:https';
import { join } from 'node:path';
import { errorMessage, UsageError } from '../errors.ts';
import type { Logger } from '../log.ts';

const FILE_NAMES = ['tls.crt', 'tls.key'] as const;
const MIN_TLS_VERSION = 'TLSv1.2';

type TlsServer = Pick<Server, 'setSecureContext'>;

export class CertificateReloader {
  readonly #directory: string;
  readonly #log: Logger;
  #lastGoodPair: { readonly cert: Buffer; readonly key: Buffer } | undefined;
  /** As the files were when they were last looked at, good or bad. */
  #lastFingerprint: string | undefined;

  constructor(directory: string, log: Logger) {
    this.#directory = directory;
    this.#log = log;
  }

  /** Gives a server that is about to listen what it shows. Throws a usage error when there has never been a pair that can be used. */
  applyTo(server: TlsServer): void {
    if (this.#lastGoodPair !== undefined) {
      this.#setContext(server, this.#lastGoodPair);
      this.reloadIfChanged(server);
      return;
    }
    this.#lastFingerprint = this.#fingerprint();
    try {
      this.#load(server);
    } catch (error) {
      throw new UsageError(
        `${this.#describeProblem(error)}; put tls.crt and tls.key there that belong together, in PEM`,
      );
    }
  }

  /** Before each handshake: two calls of the kernel, which nobody notices beside one. What cannot be used leaves the last good pair. */
  reloadIfChanged(server: TlsServer): void {
    const stamp = this.#fingerprint();
    if (stamp === this.#lastFingerprint) return;
    // Before the files are read: when they are swapped in between, the next handshake looks again.
    this.#lastFingerprint = stamp;
    try {
      this.#load(server);
      this.#log.info({ directory: this.#directory }, 'a new certificate is shown');
    } catch (error) {
      this.#log.warn({ reason: this.#describeProblem(error) }, 'the certificate cannot be renewed; the last one stays');
    }
  }

  #load(server: TlsServer): void {
    const [cert, key] = FILE_NAMES.map((name) => readFileSync(join(this.#directory, name)));
    const pair = { cert: cert as Buffer, key: key as Buffer };
    this.#setContext(server, pair);
    this.#lastGoodPair = pair;
  }

  /** Throws, and changes nothing, when the two do not belong together. */
  #setContext(server: TlsServer, pair: { readonly cert: Buffer; readonly key: Buffer }): void {
    server.setSecureContext({ ...pair, minVersion: MIN_TLS_VERSION });
  }

  #fingerprint(): string {
    return FILE_NAMES.map((name) => {
      const found = statSync(join(this.#directory, name), { bigint: true, throwIfNoEntry: false });
      return found === undefined ? 'none' : `${found.dev}/${found.ino}/${found.size}/${found.mtimeNs}`;
    }).join(' ');
  }

  #describeProblem(error: unknown): string {
    return `the certificate in ${this.#directory} cannot be used: ${errorMessage(error)}`;
  }
}
