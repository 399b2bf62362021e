import type { FleetSettings, ServiceObject } from '../snapshot.ts';
import type { ChangedIn } from './changed-in.ts';
import { Groups } from './groups.ts';
import type { Held } from './held.ts';
import { isOwned } from './owned.ts';
import type { ServiceRecord } from './service-record.ts';

/** The Services that Weir takes, found by what concerns them. */
export class ServiceBook {
  readonly #held: Map<string, ServiceRecord['held']>;
  readonly #byUid = new Map<string, ServiceRecord>();
  /** By `namespace/name`. */
  readonly #byPath = new Map<string, ServiceRecord>();
  readonly #byNamespace = new Groups<ServiceRecord>();
  readonly #byTenant = new Groups<ServiceRecord>();

  constructor(held: Held) {
    this.#held = new Map(held.services);
  }

  get size(): number {
    return this.#byUid.size;
  }

  all(): Iterable<ServiceRecord> {
    return this.#byUid.values();
  }

  byUid(uid: string): ServiceRecord | undefined {
    return this.#byUid.get(uid);
  }

  /** `namespace/name` */
  byPath(path: string): ServiceRecord | undefined {
    return this.#byPath.get(path);
  }

  /** Of which it has Services. */
  namespaces(): Iterable<string> {
    return this.#byNamespace.keys();
  }

  inNamespace(namespace: string): ReadonlySet<ServiceRecord> {
    return this.#byNamespace.of(namespace);
  }

  /** As last decided. */
  ofTenant(tenant: string): ReadonlySet<ServiceRecord> {
    return this.#byTenant.of(tenant);
  }

  /** Takes Services that came and changed, lets go of the others. */
  update(
    { gone, come }: ChangedIn<ServiceObject>,
    settings: FleetSettings,
  ): { readonly gone: readonly ServiceRecord[]; readonly changed: readonly ServiceRecord[] } {
    const own = come.filter((service) => isOwned(service, settings));
    const stays = new Set(own.map(({ uid }) => uid));
    const left = gone.filter(({ uid }) => !stays.has(uid)).flatMap(({ uid }) => this.#byUid.get(uid) ?? []);
    for (const record of left) this.#remove(record);
    const replaced = new Set(gone);
    const changed = own.map((service) => this.#put(service, replaced));
    // What is not there at first has lost what it had.
    this.#held.clear();
    return { gone: left, changed };
  }

  setTenant(record: ServiceRecord, tenant: string | null): void {
    if (record.tenant === tenant) return;
    if (record.tenant !== null) this.#byTenant.delete(record.tenant, record);
    if (tenant !== null) this.#byTenant.add(tenant, record);
    record.tenant = tenant;
  }

  #put(service: ServiceObject, replaced: ReadonlySet<ServiceObject>): ServiceRecord {
    const { uid, namespace } = service;
    const known = this.#byUid.get(uid);
    if (known !== undefined) {
      if (!replaced.has(known.service)) throw new Error(`two Services have the UID ${uid}`);
      known.service = service;
      return known;
    }
    const held = this.#held.get(uid);
    const record: ServiceRecord = {
      uid,
      service,
      held,
      ports: held?.ports ?? new Map(),
      membership: undefined,
      decision: undefined,
      tenant: null,
      entries: [],
    };
    this.#byUid.set(uid, record);
    this.#byPath.set(pathOf(service), record);
    this.#byNamespace.add(namespace, record);
    return record;
  }

  #remove(record: ServiceRecord): void {
    const { uid, service } = record;
    this.#byUid.delete(uid);
    if (this.#byPath.get(pathOf(service)) === record) this.#byPath.delete(pathOf(service));
    this.#byNamespace.delete(service.namespace, record);
    this.setTenant(record, null);
  }
}

function pathOf({ namespace, name }: ServiceObject): string {
  return `${namespace}/${name}`;
}
