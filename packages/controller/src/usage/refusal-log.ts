import type { Logger } from '@weir/runtime';
import type { ArchiveOutcome } from './usage-archive.ts';

/** How many namespaces a line names. */
const MAX_LOGGED_NAMESPACES = 5;

/** Of which namespaces the usage is not kept: told when there are others, and when all of it is kept again. */
export class ArchiveRefusalLog {
  readonly #log: Logger;
  /** By namespace: why. */
  readonly #reasonByNamespace = new Map<string, string>();
  #loggedNamespaces = '';

  constructor(log: Logger) {
    this.#log = log;
  }

  record(namespace: string, archived: ArchiveOutcome): void {
    if (archived.kind === 'refused') this.#reasonByNamespace.set(namespace, archived.reason);
    else this.#reasonByNamespace.delete(namespace);
  }

  keepOnly(present: ReadonlySet<string>): void {
    for (const namespace of this.#reasonByNamespace.keys())
      if (!present.has(namespace)) this.#reasonByNamespace.delete(namespace);
  }

  reset(): void {
    this.#reasonByNamespace.clear();
    this.#loggedNamespaces = '';
  }

  log(): void {
    const namespaces = [...this.#reasonByNamespace.keys()].sort();
    const text = namespaces.join();
    if (text === this.#loggedNamespaces) return;
    this.#loggedNamespaces = text;
    const [first] = namespaces;
    if (first === undefined) {
      this.#log.info('every TenantUsage can be written again');
      return;
    }
    const fields = {
      namespaces: namespaces.slice(0, MAX_LOGGED_NAMESPACES),
      refused: namespaces.length,
      reason: this.#reasonByNamespace.get(first),
    };
    this.#log.warn(
      fields,
      'TenantUsage is refused: a wiped store would lose what was used; it is tried again every 5 minutes',
    );
  }
}
