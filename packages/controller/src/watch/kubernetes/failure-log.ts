import { errorMessage, type Logger } from '@weir/runtime';
import type { ApiError } from '../../kubernetes/api-error.ts';

/** Says once what cannot be read, and once that it can again: eight watches fail together, and retry for hours. */
export class FailureLog {
  readonly #log: Logger;
  readonly #server: string;
  readonly #away = new Set<string>();
  readonly #refused = new Map<string, string>();

  constructor(log: Logger, server: string) {
    this.#log = log;
    this.#server = server;
  }

  note(resource: string, error: ApiError | undefined): void {
    if (error?.code === 'AWAY') {
      if (this.#away.size === 0) {
        const fields = { server: this.#server, reason: errorMessage(error) };
        this.#log.warn(fields, 'the API server is away; what is served stays as it is, and it is tried again');
      }
      this.#away.add(resource);
      return;
    }
    if (this.#away.delete(resource) && this.#away.size === 0) {
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
