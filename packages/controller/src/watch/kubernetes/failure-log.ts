import { errorMessage, type Logger } from '@weir/runtime';
import type { KubeApiError } from '../../kubernetes/api-error.ts';

/** Says once what cannot be read, and once that it can again: eight watches fail together, and retry for hours. */
export class WatchFailureLog {
  readonly #log: Logger;
  readonly #server: string;
  readonly #unreachable = new Set<string>();
  readonly #refused = new Map<string, string>();

  constructor(log: Logger, server: string) {
    this.#log = log;
    this.#server = server;
  }

  record(resource: string, error: KubeApiError | undefined): void {
    if (error?.code === 'AWAY') {
      if (this.#unreachable.size === 0) {
        const fields = { server: this.#server, reason: errorMessage(error) };
        this.#log.warn(fields, 'the API server is away; what is served stays as it is, and it is tried again');
      }
      this.#unreachable.add(resource);
      return;
    }
    if (this.#unreachable.delete(resource) && this.#unreachable.size === 0) {
      this.#log.info({ server: this.#server }, 'the API server is back');
    }
    const before = this.#refused.get(resource);
    if (error === undefined) {
      this.#refused.delete(resource);
      if (before !== undefined) this.#log.info({ resource }, 'can be read now');
    } else {
      this.#refused.set(resource, error.message);
      if (before !== error.message)
        this.#log.warn({ resource, reason: errorMessage(error) }, 'cannot be read; it is tried again');
    }
  }
}
