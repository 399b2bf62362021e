// The certificate of a server, in a directory as the kubelet mounts a Secret: it replaces both files at any moment, by swapping a symlink.
import { readFileSync, statSync } from 'node:fs';
import type { Server } from 'node:https';
import { join } from 'node:path';
import { errorMessage } from '../error-message.ts';
import type { Logger } from '../log.ts';
import { UsageError } from '../weir-error.ts';

const FILES = ['tls.crt', 'tls.key'] as const;
const LEAST_VERSION = 'TLSv1.2';

type Taking = Pick<Server, 'setSecureContext'>;

export class KeyPair {
  readonly #directory: string;
  readonly #log: Logger;
  #pair: { readonly cert: Buffer; readonly key: Buffer } | undefined;
  /** As the files were when they were last looked at, good or bad. */
  #seen: string | undefined;

  constructor(directory: string, log: Logger) {
    this.#directory = directory;
    this.#log = log;
  }

  /** Gives a server that is about to listen what it shows. Throws a usage error when there has never been a pair that can be used. */
  equip(server: Taking): void {
    if (this.#pair !== undefined) {
      this.#show(server, this.#pair);
      this.renew(server);
      return;
    }
    this.#seen = this.#stamp();
    try {
      this.#take(server);
    } catch (error) {
      throw new UsageError(`${this.#problem(error)}; put tls.crt and tls.key there that belong together, in PEM`);
    }
  }

  /** Before each handshake: two calls of the kernel, which nobody notices beside one. What cannot be used leaves the last good pair. */
  renew(server: Taking): void {
    const stamp = this.#stamp();
    if (stamp === this.#seen) return;
    // Before the files are read: when they are swapped in between, the next handshake looks again.
    this.#seen = stamp;
    try {
      this.#take(server);
      this.#log.info({ directory: this.#directory }, 'a new certificate is shown');
    } catch (error) {
      this.#log.warn({ reason: this.#problem(error) }, 'the certificate cannot be renewed; the last one stays');
    }
  }

  #take(server: Taking): void {
    const [cert, key] = FILES.map((name) => readFileSync(join(this.#directory, name)));
    const pair = { cert: cert as Buffer, key: key as Buffer };
    this.#show(server, pair);
    this.#pair = pair;
  }

  /** Throws, and changes nothing, when the two do not belong together. */
  #show(server: Taking, pair: { readonly cert: Buffer; readonly key: Buffer }): void {
    server.setSecureContext({ ...pair, minVersion: LEAST_VERSION });
  }

  #stamp(): string {
    return FILES.map((name) => {
      const found = statSync(join(this.#directory, name), { bigint: true, throwIfNoEntry: false });
      return found === undefined ? 'none' : `${found.dev}/${found.ino}/${found.size}/${found.mtimeNs}`;
    }).join(' ');
  }

  #problem(error: unknown): string {
    return `the certificate in ${this.#directory} cannot be used: ${errorMessage(error)}`;
  }
}
