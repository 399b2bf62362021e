import type { FleetSettings } from '../fleet-settings.ts';
import type { ListDiff } from '../list-diff.ts';
import { DEFAULT_POOL } from '../policy.ts';
import type { ServiceObject } from '../snapshot.ts';
import type { Entry } from '../table/entry.ts';
import {
  type Allocations,
  exclusivePortsOf,
  type ServedPortNames,
  type ServiceAllocation,
  servedPortNames,
} from './allocate/allocations.ts';
import type { Decision } from './decision.ts';
import { MultiMap } from './multi-map.ts';
import type { Nodes } from './nodes.ts';
import { isOwned } from './owned-services.ts';
import type { Membership } from './tenancy.ts';

/** The Services that Weir takes, found by what concerns them. */
export class ServiceRegistry {
  readonly #previousAllocations: Map<string, ServiceRecord['allocation']>;
  readonly #byUid = new Map<string, ServiceRecord>();
  /** By `namespace/name`. */
  readonly #byPath = new Map<string, ServiceRecord>();
  readonly #byNamespace = new MultiMap<ServiceRecord>();
  readonly #byTenant = new MultiMap<ServiceRecord>();

  constructor(held: Allocations) {
    this.#previousAllocations = new Map(held.services);
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

  ofNamespace(namespace: string): ReadonlySet<ServiceRecord> {
    return this.#byNamespace.get(namespace);
  }

  /** As last decided. */
  ofTenant(tenant: string): ReadonlySet<ServiceRecord> {
    return this.#byTenant.get(tenant);
  }

  /** Takes Services that came and changed, lets go of the others. */
  update(
    { removed, added }: ListDiff<ServiceObject>,
    settings: FleetSettings,
  ): { readonly gone: readonly ServiceRecord[]; readonly changed: readonly ServiceRecord[] } {
    const own = added.filter((service) => isOwned(service, settings));
    const stays = new Set(own.map(({ uid }) => uid));
    const left = removed.filter(({ uid }) => !stays.has(uid)).flatMap(({ uid }) => this.#byUid.get(uid) ?? []);
    for (const record of left) this.#remove(record);
    const replaced = new Set(removed);
    const changed = own.map((service) => this.#put(service, replaced));
    // What is not there at first has lost what it had.
    this.#previousAllocations.clear();
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
    const allocation = this.#previousAllocations.get(uid);
    const record: ServiceRecord = {
      uid,
      service,
      allocation,
      servedPortNames: allocation?.ports ?? new Map(),
      membership: undefined,
      decision: undefined,
      tenant: null,
      entries: [],
    };
    this.#byUid.set(uid, record);
    this.#byPath.set(servicePath(service), record);
    this.#byNamespace.add(namespace, record);
    return record;
  }

  #remove(record: ServiceRecord): void {
    const { uid, service } = record;
    this.#byUid.delete(uid);
    if (this.#byPath.get(servicePath(service)) === record) this.#byPath.delete(servicePath(service));
    this.#byNamespace.delete(service.namespace, record);
    this.setTenant(record, null);
  }
}

function servicePath({ namespace, name }: ServiceObject): string {
  return `${namespace}/${name}`;
}

/** All that is known of one Service that Weir takes, and what was last decided about it. */
export interface ServiceRecord {
  readonly uid: string;
  service: ServiceObject;
  /** What serves on while the present wish is refused. */
  allocation: ServiceAllocation | undefined;
  /** Undefined: not decided yet. */
  membership: Membership | undefined;
  decision: Decision | undefined;
  /** Of the decision. */
  tenant: string | null;
  /** As they were served last. */
  servedPortNames: ServedPortNames;
  /** Its part of the table. */
  entries: readonly Entry[];
}

/** What serves on, whatever it asks for next; undefined: it was given nothing. */
export function allocationOf({ decision }: ServiceRecord): ServiceAllocation | undefined {
  if (decision === undefined || decision.settings === null || decision.tenant === null) return undefined;
  const { settings, tenant, pool, ports, certificate } = decision;
  return {
    settings,
    tenant,
    pool: pool ?? DEFAULT_POOL,
    ports: servedPortNames(ports),
    exclusivePorts: exclusivePortsOf(ports),
    certificate,
  };
}

/** It did not get all that it asks for, or is on a node in whose place it would have another, and might when somebody gives something up. */
export function hasUnmetDemand({ decision }: ServiceRecord, { lost }: Pick<Nodes, 'lost'>): boolean {
  if (decision === undefined) return false;
  return (
    decision.settings === null ||
    decision.nodes.some((node) => lost.has(node)) ||
    decision.accepted.reason !== 'Accepted' ||
    decision.ports.some(({ error }) => error !== null) ||
    decision.degraded.some(({ reason }) => reason === 'FewerNodes')
  );
}
