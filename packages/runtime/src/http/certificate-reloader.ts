// Reloads a server's certificate from a mounted Secret. The kubelet may replace both files at any moment by swapping a
// symbolic link.
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
  /** The fingerprint of the files at the last load, successful or not. */
  #lastFingerprint: string | undefined;

  constructor(directory: string, log: Logger) {
    this.#directory = directory;
    this.#log = log;
  }

  /**
   * Sets the certificate of a server that is about to listen. Throws `UsageError` if the files are invalid and no valid
   * pair was loaded before.
   */
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
      throw new UsageError(`${this.#describeProblem(error)}; expected a matching tls.crt and tls.key in PEM format`);
    }
  }

  /**
   * Reloads the files if they changed. If the new files are invalid, keeps the last good pair. Runs before each
   * handshake, at the cost of two stat calls.
   */
  reloadIfChanged(server: TlsServer): void {
    const fingerprint = this.#fingerprint();
    if (fingerprint === this.#lastFingerprint) return;
    // Set before the files are read, so that the next handshake reloads the files if they are swapped during the read.
    this.#lastFingerprint = fingerprint;
    try {
      this.#load(server);
      this.#log.info({ directory: this.#directory }, 'reloaded the certificate');
    } catch (error) {
      this.#log.warn(
        { reason: this.#describeProblem(error) },
        'failed to reload the certificate; keeping the previous certificate',
      );
    }
  }

  #load(server: TlsServer): void {
    const [cert, key] = FILE_NAMES.map((name) => readFileSync(join(this.#directory, name)));
    const pair = { cert: cert as Buffer, key: key as Buffer };
    this.#setContext(server, pair);
    this.#lastGoodPair = pair;
  }

  /** Sets the certificate and key. Throws and changes nothing if the key does not belong to the certificate. */
  #setContext(server: TlsServer, pair: { readonly cert: Buffer; readonly key: Buffer }): void {
    server.setSecureContext({ ...pair, minVersion: MIN_TLS_VERSION });
  }

  #fingerprint(): string {
    return FILE_NAMES.map((name) => {
      const file = statSync(join(this.#directory, name), { bigint: true, throwIfNoEntry: false });
      return file === undefined ? 'none' : `${file.dev}/${file.ino}/${file.size}/${file.mtimeNs}`;
    }).join(' ');
  }

  #describeProblem(error: unknown): string {
    return `invalid certificate in ${this.#directory}: ${errorMessage(error)}`;
  }
}
