import type { Logger } from '@weir/runtime';
import type { Archived } from './usage-archive.ts';

/** How many namespaces a line names. */
const NAMED = 5;

/** Of which namespaces the usage is not kept: told when there are others, and when all of it is kept again. */
export class RefusalLog {
  readonly #log: Logger;
  /** By namespace: why. */
  readonly #refused = new Map<string, string>();
  #told = '';

  constructor(log: Logger) {
    this.#log = log;
  }

  note(namespace: string, archived: Archived): void {
    if (archived.kind === 'refused') this.#refused.set(namespace, archived.reason);
    else this.#refused.delete(namespace);
  }

  keepOnly(present: ReadonlySet<string>): void {
    for (const namespace of this.#refused.keys()) if (!present.has(namespace)) this.#refused.delete(namespace);
  }

  forget(): void {
    this.#refused.clear();
    this.#told = '';
  }

  tell(): void {
    const namespaces = [...this.#refused.keys()].sort();
    const text = namespaces.join();
    if (text === this.#told) return;
    this.#told = text;
    const [first] = namespaces;
    if (first === undefined) {
      this.#log.info('every TenantUsage can be written again');
      return;
    }
    const fields = {
      namespaces: namespaces.slice(0, NAMED),
      refused: namespaces.length,
      reason: this.#refused.get(first),
    };
    this.#log.warn(
      fields,
      'TenantUsage is refused: a wiped store would lose what was used; it is tried again every 5 minutes',
    );
  }
}
