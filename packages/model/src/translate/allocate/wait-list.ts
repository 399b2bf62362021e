import type { Decision } from '../decision.ts';
import { MultiMap } from '../multi-map.ts';
import type { ServiceRecord } from '../service-registry.ts';

interface WaitEntry {
  readonly resources: readonly string[];
  readonly tenant: string | undefined;
}

/**
 * The Services that did not get everything that they request. Finds the Services that wait for a port, a host or the limits of a tenant.
 */
export class WaitList {
  readonly #entries = new Map<ServiceRecord, WaitEntry>();
  /** The waiting Services, by `portKey`, `portShareKey` and `portHostKey`. */
  readonly #byResource = new MultiMap<ServiceRecord>();
  readonly #byTenant = new MultiMap<ServiceRecord>();

  get size(): number {
    return this.#entries.size;
  }

  /** Adds a Service, or replaces the resources and the tenant that the Service waits for. */
  put(
    record: ServiceRecord,
    { wantedResources, quotaDependency }: Pick<Decision, 'wantedResources' | 'quotaDependency'>,
  ): void {
    const before = this.#entries.get(record);
    const tenant = quotaDependency?.tenant;
    // Most updates change nothing: the Service waits for the same resources as before.
    if (before?.tenant === tenant && before?.resources.join() === wantedResources.join()) return;
    this.delete(record);
    this.#entries.set(record, { resources: wantedResources, tenant });
    for (const key of wantedResources) this.#byResource.add(key, record);
    if (tenant !== undefined) this.#byTenant.add(tenant, record);
  }

  delete(record: ServiceRecord): void {
    const entry = this.#entries.get(record);
    if (entry === undefined) return;
    this.#entries.delete(record);
    for (const key of entry.resources) this.#byResource.delete(key, record);
    if (entry.tenant !== undefined) this.#byTenant.delete(entry.tenant, record);
  }

  waitersForResource(key: string): ReadonlySet<ServiceRecord> {
    return this.#byResource.get(key);
  }

  waitersForTenant(tenant: string): ReadonlySet<ServiceRecord> {
    return this.#byTenant.get(tenant);
  }
}

/**
 * The position of a Service in the order in which the allocator considers Services. Lower values come first; `age` decides between
 * Services of one class, `path` between Services of one age.
 */
export interface Priority {
  /**
   * 0: has listeners. 1: has an allocation but no listeners, because no node was available. 2: has a published address. 3: none of these.
   */
  readonly class: number;
  /** Creation time in milliseconds since the epoch. A Service without a creation time comes last. */
  readonly age: number;
  readonly path: string;
}

/**
 * Returns the priority of a Service. Services with the same creation time are ordered by namespace and name, because users can see names
 * but rarely see UIDs. One `kubectl apply` creates many Services in the same second, and manifests in a directory have no creation time.
 */
export function priorityOf({ service, allocation }: ServiceRecord, ownsPorts: boolean): Priority {
  const { namespace, name, publishedIPs, createdAt } = service;
  const priorityClass = ownsPorts ? 0 : allocation !== undefined ? 1 : publishedIPs.length > 0 ? 2 : 3;
  // NUL sorts before all characters of a name, so the path sorts like (namespace, name).
  return { class: priorityClass, age: createdAt ?? Number.MAX_SAFE_INTEGER, path: `${namespace}\0${name}` };
}

function comparePriorities(a: Priority, b: Priority): number {
  return a.class - b.class || a.age - b.age || (a.path < b.path ? -1 : a.path > b.path ? 1 : 0);
}

/**
 * Why a Service is in the queue. `dirty`: an object that the Service depends on has changed. `resource`: a port or host that the Service
 * waits for has changed. `quota`: the usage of the tenant limits that the Service waits for has changed.
 */
export type Cause = 'dirty' | 'resource' | 'quota';

interface Candidate {
  readonly record: ServiceRecord;
  readonly priority: Priority;
  readonly cause: Cause;
}

/** A queue of the Services of one round, ordered by priority (a binary heap). Returns each Service at most once. */
export class RoundQueue {
  readonly #priorityOf: (record: ServiceRecord) => Priority;
  readonly #heap: Candidate[] = [];
  readonly #considered = new Set<ServiceRecord>();
  readonly #queued: Readonly<Record<Exclude<Cause, 'dirty'>, Set<ServiceRecord>>> = {
    resource: new Set(),
    quota: new Set(),
  };
  /** The cause and key of each call of `addWaiters` in this round. */
  readonly #addedKeys = new Set<string>();
  #current: Priority | undefined;

  constructor(priorityOf: (record: ServiceRecord) => Priority, dirty: Iterable<ServiceRecord>) {
    this.#priorityOf = priorityOf;
    for (const record of dirty) this.#push({ record, priority: priorityOf(record), cause: 'dirty' });
  }

  /**
   * Adds the Services in `waiters` that come after the current Service; the next round considers the other Services. `key` identifies the
   * resource or tenant that the Services wait for. A second call with the same key adds nothing, because the first call has added all
   * waiters that come later.
   */
  addWaiters(cause: Exclude<Cause, 'dirty'>, key: string, waiters: Iterable<ServiceRecord>): void {
    if (this.#addedKeys.has(`${cause} ${key}`)) return;
    this.#addedKeys.add(`${cause} ${key}`);
    for (const record of waiters) {
      if (this.#considered.has(record) || this.#queued[cause].has(record)) continue;
      const priority = this.#priorityOf(record);
      if (this.#current !== undefined && comparePriorities(this.#current, priority) >= 0) continue;
      this.#queued[cause].add(record);
      this.#push({ record, priority, cause });
    }
  }

  /** Removes Services up to the first one for which `isDue` holds, and returns that Service; undefined at the end of the round. */
  next(isDue: (record: ServiceRecord, cause: Cause) => boolean): ServiceRecord | undefined {
    for (let candidate = this.#pop(); candidate !== undefined; candidate = this.#pop()) {
      const { record, priority, cause } = candidate;
      if (this.#considered.has(record) || !isDue(record, cause)) continue;
      this.#considered.add(record);
      this.#current = priority;
      return record;
    }
    return undefined;
  }

  #push(candidate: Candidate): void {
    let index = this.#heap.push(candidate) - 1;
    while (index > 0) {
      const parent = (index - 1) >> 1;
      if (!this.#isBefore(index, parent)) return;
      this.#swap(index, parent);
      index = parent;
    }
  }

  #pop(): Candidate | undefined {
    const first = this.#heap[0];
    const last = this.#heap.pop();
    if (last === undefined || this.#heap.length === 0) return first;
    this.#heap[0] = last;
    for (let index = 0; ; ) {
      const [left, right] = [2 * index + 1, 2 * index + 2];
      let smallest = index;
      if (left < this.#heap.length && this.#isBefore(left, smallest)) smallest = left;
      if (right < this.#heap.length && this.#isBefore(right, smallest)) smallest = right;
      if (smallest === index) return first;
      this.#swap(index, smallest);
      index = smallest;
    }
  }

  #isBefore(a: number, b: number): boolean {
    return comparePriorities((this.#heap[a] as Candidate).priority, (this.#heap[b] as Candidate).priority) < 0;
  }

  #swap(a: number, b: number): void {
    const candidate = this.#heap[a] as Candidate;
    this.#heap[a] = this.#heap[b] as Candidate;
    this.#heap[b] = candidate;
  }
}
