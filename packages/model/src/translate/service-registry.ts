import type { ListDiff } from '../compare.ts';
import type { FleetSettings } from '../fleet-settings.ts';
import { DEFAULT_POOL } from '../policy.ts';
import type { ServiceObject } from '../snapshot.ts';
import type { EndpointsEntry, Entry } from '../table/entry.ts';
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

/** The Services that Weir owns, indexed by UID, path, namespace and tenant. */
export class ServiceRegistry {
  readonly #previousAllocations: Map<string, ServiceRecord['allocation']>;
  readonly #previousEndpoints: Map<string, readonly EndpointsEntry[]>;
  readonly #byUid = new Map<string, ServiceRecord>();
  readonly #byPath = new Map<string, ServiceRecord>();
  readonly #byNamespace = new MultiMap<ServiceRecord>();
  readonly #byTenant = new MultiMap<ServiceRecord>();

  constructor(allocations: Allocations) {
    this.#previousAllocations = new Map(allocations.services);
    this.#previousEndpoints = new Map(allocations.endpoints);
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

  /** Returns the Service with the path `namespace/name`. */
  byPath(path: string): ServiceRecord | undefined {
    return this.#byPath.get(path);
  }

  /** Returns the namespaces that have Services. */
  namespaces(): Iterable<string> {
    return this.#byNamespace.keys();
  }

  ofNamespace(namespace: string): ReadonlySet<ServiceRecord> {
    return this.#byNamespace.get(namespace);
  }

  /** Returns the Services whose last decision was made for the tenant. */
  ofTenant(tenant: string): ReadonlySet<ServiceRecord> {
    return this.#byTenant.get(tenant);
  }

  /** Applies a change of the Service list. Returns the removed records, and the records that are new or changed. */
  update(
    diff: ListDiff<ServiceObject>,
    settings: FleetSettings,
  ): { readonly removed: readonly ServiceRecord[]; readonly changed: readonly ServiceRecord[] } {
    const owned = diff.added.filter((service) => isOwned(service, settings));
    const ownedUids = new Set(owned.map(({ uid }) => uid));
    const removed = diff.removed
      .filter(({ uid }) => !ownedUids.has(uid))
      .flatMap(({ uid }) => this.#byUid.get(uid) ?? []);
    for (const record of removed) this.#remove(record);
    const replaced = new Set(diff.removed);
    const changed = owned.map((service) => this.#put(service, replaced));
    // The former allocations apply to the first snapshot only: a Service that is missing there loses its allocation.
    this.#previousAllocations.clear();
    this.#previousEndpoints.clear();
    return { removed, changed };
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
      endpoints: this.#previousEndpoints.get(uid) ?? [],
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

/** One Service that Weir owns, with its last decision and its table entries. */
export interface ServiceRecord {
  readonly uid: string;
  service: ServiceObject;
  /** What the Service keeps while its new settings are refused; undefined if nothing is allocated to the Service. */
  allocation: ServiceAllocation | undefined;
  /** The tenant of the Service's namespace, or why the tenant is disputed; undefined for a new Service. */
  membership: Membership | undefined;
  decision: Decision | undefined;
  /** The tenant of the last decision; null if there is none. */
  tenant: string | null;
  /** The names that the slices had for the served ports in the last table. */
  servedPortNames: ServedPortNames;
  /** The endpoints entries in the last table. */
  endpoints: readonly EndpointsEntry[];
  entries: readonly Entry[];
}

/** Returns what the last decision allocated to a Service; undefined if the Service was refused or has no decision yet. */
export function allocationOf({ decision }: ServiceRecord): ServiceAllocation | undefined {
  if (decision === undefined || decision.settings === null || decision.tenant === null) return undefined;
  const { settings, tenant, pool, ports, certificates, errorPages } = decision;
  return {
    settings,
    tenant,
    pool: pool ?? DEFAULT_POOL,
    ports: servedPortNames(ports),
    exclusivePorts: exclusivePortsOf(ports),
    certificates,
    errorPages,
  };
}

/**
 * Reports whether a Service could get more, or could leave a lost node, if another Service released a port, a host or a part of the
 * tenant's limits.
 */
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
