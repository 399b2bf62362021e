// Decides which Service owns which ports and hosts, and which Services use up the limits of a tenant.
//
// A Service keeps a listener as long as its spec has the port and the node binds the address. Everything else is allocated in order of
// priority: (1) Services with listeners, (2) Services with an allocation but no listeners, because no node was available, (3) Services
// with a published address, (4) all other Services. Among Services of equal priority the oldest comes first. Services that were created
// in the same second are ordered by namespace and name.
//
// After each change of a port, a host or a tenant's usage, the allocator considers the Services that wait for this resource again, in
// order of priority. A run ends when no waiting Service needs a new decision. An incremental run has the same result as a full run over
// the same allocations.
//
// Every Service gets its first node before any Service gets a further node. So a Service takes further nodes in a round of its own, which
// begins when no other Service needs a new decision.
//
// The priority of a Service does not change during a run, which makes the result deterministic. A round considers each Service at most
// once. If a waiting Service comes after the Service that was just decided, the waiting Service joins the current round: otherwise a
// Service of lower priority could get a released port first. All other waiting Services are considered in the next round.
import type { FleetSettings } from '../../fleet-settings.ts';
import type { ServiceObject } from '../../snapshot.ts';
import type { ListenerEntry } from '../../table/entry.ts';
import type { ConfigMapIndex } from '../config-map-index.ts';
import { type Decision, decideService } from '../decision.ts';
import { MultiMap } from '../multi-map.ts';
import type { Nodes } from '../nodes.ts';
import type { SecretIndex } from '../secret-index.ts';
import { allocationOf, hasUnmetDemand, type ServiceRecord, type ServiceRegistry } from '../service-registry.ts';
import { serviceBytes } from '../table-bytes.ts';
import type { Tenancy } from '../tenancy.ts';
import type { Allocations, ServiceAllocation } from './allocations.ts';
import { portKey, resourceKeysOf } from './allocations.ts';
import { type HostClaim, isSameClaim, type SharingSettings } from './host-claims.ts';
import { retainedListeners } from './placement.ts';
import { isRefusedAlike } from './pool-placement.ts';
import { ANOTHER_TENANT, type Binding, type OwnerText, PortAllocations } from './port-allocations.ts';
import { Quota } from './quota.ts';
import { type Cause, type Priority, priorityOf, RoundQueue, WaitList } from './wait-list.ts';

export interface AllocationContext {
  readonly fleet: FleetSettings;
  readonly nodes: Nodes;
  readonly tenancy: Tenancy;
  readonly secrets: SecretIndex;
  readonly configMaps: ConfigMapIndex;
}

/** The ports, hosts and tenants that decisions affect. */
export interface ChangedResources {
  /** Keys of the ports and hosts that were allocated or released: `portKey`, `portShareKey` and `portHostKey`. */
  readonly resources: Set<string>;
  /** Names of the tenants whose usage changed, or for which `Quota.isCrowded` changed. */
  readonly tenants: Set<string>;
}

/**
 * The maximum number of rounds in a run of the allocator, for each dirty or waiting Service. A further round follows only if an
 * allocation or a tenant's usage changed. In the worst case, each round moves only one of the waiting Services. The limit is a guard
 * against endless runs and must never be reached. Decisions made before the limit is reached are consistent.
 */
const MAX_ROUNDS_PER_SERVICE = 4;

export class Allocator {
  readonly quota: Quota = new Quota();
  readonly #portAllocations = new PortAllocations();
  readonly #waitList = new WaitList();
  readonly #services: Pick<ServiceRegistry, 'byUid'>;
  /**
   * The listeners of the last table, by Service UID. The first call of `allocate` clears the map, so that a Service that is missing in
   * the first snapshot loses its listeners.
   */
  readonly #previousListeners: Map<string, readonly ListenerEntry[]>;

  /** `allocations` are the allocations of the last published table. */
  constructor(services: Pick<ServiceRegistry, 'byUid'>, allocations: Allocations) {
    this.#services = services;
    this.#previousListeners = Map.groupBy(allocations.listeners.values(), ({ service }) => service);
  }

  /** Returns the UIDs of the Services that own or share a binding. */
  ownersAt(binding: Binding): readonly string[] {
    return this.#portAllocations.ownersAt(binding);
  }

  /**
   * Makes a new decision for each dirty Service, and for each waiting Service that these decisions affect. Returns the Services that have
   * a new decision, and what the decisions affect.
   */
  allocate(
    dirty: ReadonlySet<ServiceRecord>,
    removed: readonly ServiceRecord[],
    context: AllocationContext,
  ): { readonly decided: ReadonlySet<ServiceRecord>; readonly affected: ChangedResources } {
    this.#restorePreviousListeners(dirty);
    const priorities = this.#freezePriorities(dirty);
    const isDue = (record: ServiceRecord, cause: Cause): boolean => this.#isDue(record, cause, context);
    const decided = new Set<ServiceRecord>();
    const affected = noChange();
    let changed = noChange();
    for (const record of removed) this.#release(record, changed);
    for (const record of dirty) this.#dropLostListeners(record, context, changed);
    let queue = new RoundQueue(priorities, dirty);
    /** The Services that could have further nodes. */
    let waitingForNodes = new Set<ServiceRecord>();
    const maxRounds = MAX_ROUNDS_PER_SERVICE * (1 + this.#waitList.size + dirty.size);
    for (let round = 0; round < maxRounds; round += 1) {
      this.#queueWaiters(queue, changed);
      addAll(affected, changed);
      changed = noChange();
      let growing: ReadonlySet<ServiceRecord> = new Set();
      let record = queue.next(isDue);
      if (record === undefined) {
        growing = waitingForNodes;
        waitingForNodes = new Set();
        queue = new RoundQueue(priorities, growing);
        record = queue.next(isDue);
      }
      if (record === undefined) break;
      for (; record !== undefined; record = queue.next(isDue)) {
        const change = this.#decide(record, { ...context, mayAddNodes: growing.has(record) });
        decided.add(record);
        if (record.decision?.wantsMoreNodes) waitingForNodes.add(record);
        else waitingForNodes.delete(record);
        this.#queueWaiters(queue, change);
        addAll(changed, change);
      }
      queue = new RoundQueue(priorities, []);
    }
    return { decided, affected };
  }

  /**
   * Returns the Services that wait for ports or hosts of `records`. The messages of the waiting Services may name the owners of the
   * ports.
   */
  waitersForPortsOf(records: Iterable<ServiceRecord>): ReadonlySet<ServiceRecord> {
    const waiters = new Set<ServiceRecord>();
    for (const { uid } of records)
      for (const key of resourceKeysOf(this.#portAllocations.listenersOf(uid), this.#portAllocations.hostsOf(uid)))
        for (const waiter of this.#waitList.waitersForResource(key)) waiters.add(waiter);
    return waiters;
  }

  #restorePreviousListeners(dirty: ReadonlySet<ServiceRecord>): void {
    for (const { uid, service, allocation } of dirty) {
      const listeners = this.#previousListeners.get(uid);
      const owner = allocation && { namespace: service.namespace, settings: allocation.settings };
      if (listeners !== undefined) this.#portAllocations.allocate(uid, listeners, owner);
    }
    this.#previousListeners.clear();
  }

  /**
   * Returns a function that gives the priority of a Service. The priority of a dirty Service is computed now; the priority of any other
   * Service is computed when the function is first called for that Service.
   */
  #freezePriorities(dirty: ReadonlySet<ServiceRecord>): (record: ServiceRecord) => Priority {
    const priorities = new Map<ServiceRecord, Priority>();
    const priorityOfRecord = (record: ServiceRecord): Priority => {
      const known = priorities.get(record);
      if (known !== undefined) return known;
      const priority = priorityOf(record, this.#portAllocations.listenersOf(record.uid).length > 0);
      priorities.set(record, priority);
      return priority;
    };
    for (const record of dirty) priorityOfRecord(record);
    return priorityOfRecord;
  }

  #queueWaiters(queue: RoundQueue, { resources, tenants }: ChangedResources): void {
    for (const key of resources) queue.addWaiters('resource', key, this.#waitList.waitersForResource(key));
    for (const tenant of tenants) queue.addWaiters('quota', tenant, this.#waitList.waitersForTenant(tenant));
  }

  /**
   * Reports whether a queued Service needs a new decision. Thousands of Services may wait for one port or one tenant's limits, but only a
   * Service whose result would differ needs a new decision.
   */
  #isDue(record: ServiceRecord, cause: Cause, context: AllocationContext): boolean {
    if (cause === 'dirty') return true;
    return cause === 'resource' ? !this.#isRefusedAlike(record, context) : !this.#isQuotaUnchanged(record, context);
  }

  /** Reports whether placement would refuse a Service with the same message as in its last decision. */
  #isRefusedAlike({ service, decision }: ServiceRecord, { fleet, nodes, tenancy }: AllocationContext): boolean {
    const portAllocations = this.#portAllocations;
    const ownerText = this.#ownerTextFor(service, tenancy);
    const refused = decision?.refusedPlacement;
    return refused !== undefined && isRefusedAlike(refused, { fleet, nodes, portAllocations, ownerText });
  }

  /** Reports whether every question of the last decision about the tenant's limits still has the same answer. */
  #isQuotaUnchanged({ decision }: ServiceRecord, { tenancy }: AllocationContext): boolean {
    const dependency = decision?.quotaDependency;
    if (dependency === undefined) return true;
    const tenant = tenancy.tenants.get(dependency.tenant);
    if (tenant === undefined) return false;
    return dependency.results.every(({ query, result }) => this.quota.evaluate(tenant, query) === result);
  }

  #release(record: ServiceRecord, changed: ChangedResources): void {
    const { uid } = record;
    this.#allocatePorts(record, { listeners: [], settings: undefined }, changed);
    addTenant(changed, this.quota.tenantOf(uid));
    this.quota.uncount(uid);
    this.#updateWaitList(record, undefined, changed);
  }

  /**
   * Releases the listeners that a Service cannot keep, and counts the ports that the Service keeps. Runs for all dirty Services before
   * the first decision, because a decision must also count the ports of Services that are decided later.
   */
  #dropLostListeners(record: ServiceRecord, { nodes, tenancy }: AllocationContext, changed: ChangedResources): void {
    const { uid, service } = record;
    const before = this.#portAllocations.listenersOf(uid);
    const listeners = retainedListeners(before, service, nodes);
    const settings = currentAllocation(record)?.settings;
    if (listeners.length < before.length) this.#allocatePorts(record, { listeners, settings }, changed);
    this.#noteUsageChange(uid, changed, () => this.#countAllocatedPorts(record, tenancy));
  }

  /**
   * Decides which nodes, ports and hosts one Service gets, and applies the decision. Returns the ports, hosts and tenants that changed.
   */
  #decide(record: ServiceRecord, context: AllocationContext & { readonly mayAddNodes: boolean }): ChangedResources {
    const { uid, service } = record;
    const { fleet, nodes, tenancy, secrets, configMaps, mayAddNodes } = context;
    const membership = tenancy.membershipOf(service.namespace);
    const changed = noChange();
    this.#noteUsageChange(uid, changed, () => {
      // A decision asks the quota only about ports that the Service does not own yet, so the owned ports are counted first.
      this.#countAllocatedPorts(record, tenancy);
      record.decision = decideService(service, {
        fleet,
        nodes,
        secrets,
        configMaps,
        membership,
        allocation: currentAllocation(record),
        quota: this.quota,
        portAllocations: this.#portAllocations,
        ownerText: this.#ownerTextFor(service, tenancy),
        mayAddNodes,
      });
      const servedPorts = record.decision.ports.filter(({ error }) => error === null).length;
      if (record.decision.settings === null) this.quota.uncount(uid);
      // A Service whose tenant is disputed is not counted, because it must not use up the limits of the policy that owns the tenant.
      else if (membership.kind === 'tenant') {
        const { settings, certificates, errorPages } = record.decision;
        const portsOnNodes = servedPorts * Math.max(1, record.decision.nodes.length);
        const bytes = serviceBytes({ settings, certificates, errorPages }, { ports: servedPorts, portsOnNodes });
        this.quota.count(membership.tenant.name, service, { ports: portsOnNodes, bytes });
      }
    });
    const decision = record.decision as Decision;
    const isWaiting = hasUnmetDemand(record, nodes) && !decision.wantsMoreNodes;
    this.#updateWaitList(record, isWaiting ? decision : undefined, changed);
    const { listeners, settings } = decision;
    this.#allocatePorts(record, { listeners, settings: settings ?? undefined }, changed);
    return changed;
  }

  /**
   * Replaces the listeners and hosts of a Service. If these or the claims of the hosts differ, adds the keys of the old and the new ports and
   * hosts to `changed`.
   */
  #allocatePorts(
    { uid, service: { namespace } }: ServiceRecord,
    {
      listeners,
      settings,
    }: { readonly listeners: readonly ListenerEntry[]; readonly settings: SharingSettings | undefined },
    changed: ChangedResources,
  ): void {
    const before = this.#portAllocations.listenersOf(uid);
    const hostsBefore = this.#portAllocations.hostsOf(uid);
    const claimsBefore = this.#portAllocations.claimsOf(uid);
    this.#portAllocations.allocate(uid, listeners, settings && { namespace, settings });
    const hostsNow = this.#portAllocations.hostsOf(uid);
    const hasSameListeners = idsOf(before) === idsOf(listeners);
    const hasSameClaims = areSameClaims(claimsBefore, this.#portAllocations.claimsOf(uid));
    if (hasSameListeners && hasSameClaims && hostsNow.join() === hostsBefore.join()) return;
    for (const key of resourceKeysOf(before, hostsBefore)) changed.resources.add(key);
    for (const key of resourceKeysOf(listeners, hostsNow)) changed.resources.add(key);
  }

  /** Counts the ports that a Service owns. A port counts once for each of its nodes, or once if no node is available for it. */
  #countAllocatedPorts(record: ServiceRecord, tenancy: Tenancy): void {
    const { uid, service } = record;
    const membership = tenancy.membershipOf(service.namespace);
    const nodesByPort = new MultiMap<string>();
    for (const listener of this.#portAllocations.listenersOf(uid)) nodesByPort.add(portKey(listener), listener.node);
    const allocation = currentAllocation(record);
    const allocated = allocation?.ports;
    const nodeCounts = service.ports.map((port) => {
      const nodes = nodesByPort.get(portKey(port)).size;
      return nodes > 0 || allocated?.has(portKey(port)) !== true ? nodes : 1;
    });
    const ports = nodeCounts.filter((count) => count > 0).length;
    const portsOnNodes = nodeCounts.reduce((sum, count) => sum + count, 0);
    if (membership.kind === 'tenant' && ports > 0) {
      const bytes = allocation === undefined ? 0 : serviceBytes(allocation, { ports, portsOnNodes });
      this.quota.count(membership.tenant.name, service, { ports: portsOnNodes, bytes });
    } else this.quota.uncount(uid);
  }

  #noteUsageChange(uid: string, changed: ChangedResources, change: () => void): void {
    const [tenantBefore, before] = [this.quota.tenantOf(uid), this.quota.serviceUsageOf(uid)];
    change();
    const [tenant, now] = [this.quota.tenantOf(uid), this.quota.serviceUsageOf(uid)];
    if (tenant === tenantBefore && now.ports === before.ports && now.bytes === before.bytes) return;
    addTenant(changed, tenantBefore);
    addTenant(changed, tenant);
  }

  /** Puts a Service on the wait list. If `decision` is undefined, the Service waits for nothing and is removed from the list. */
  #updateWaitList(record: ServiceRecord, decision: Decision | undefined, changed: ChangedResources): void {
    const { uid } = record;
    const dependency = decision?.quotaDependency;
    const isRefused = dependency?.results.some(({ result }) => typeof result === 'string') === true;
    const before = this.quota.waitingTenantOf(uid);
    const now = isRefused ? dependency?.tenant : undefined;
    if (decision === undefined) this.#waitList.delete(record);
    else this.#waitList.put(record, decision);
    if (before === now) return;
    const tenants = [before, now].flatMap((tenant) => tenant ?? []);
    const wereCrowded = tenants.map((tenant) => this.quota.isCrowded(tenant));
    this.quota.setWaiting(uid, now);
    // The messages of all waiting Services of a tenant change when the tenant becomes crowded or stops being crowded.
    tenants.forEach((tenant, i) => {
      if (this.quota.isCrowded(tenant) !== wereCrowded[i]) addTenant(changed, tenant);
    });
  }

  /**
   * Returns a function that gives the text for the owner of a port in messages to one Service. The text names the owner only if the owner
   * has the same tenant as that Service. A Service whose tenant is disputed never has the same tenant as an owner.
   */
  #ownerTextFor({ namespace }: ServiceObject, tenancy: Tenancy): OwnerText {
    const tenantOf = (name: string): string | undefined => {
      const membership = tenancy.membershipOf(name);
      return membership.kind === 'tenant' ? membership.tenant.name : undefined;
    };
    return (uid) => {
      const owner = this.#services.byUid(uid)?.service;
      const tenant = tenantOf(namespace);
      const isSameTenant = owner !== undefined && tenant !== undefined && tenantOf(owner.namespace) === tenant;
      return isSameTenant ? `Service ${owner.namespace}/${owner.name}` : ANOTHER_TENANT;
    };
  }
}

function noChange(): ChangedResources {
  return { resources: new Set(), tenants: new Set() };
}

function addAll(target: ChangedResources, { resources, tenants }: ChangedResources): void {
  for (const key of resources) target.resources.add(key);
  for (const tenant of tenants) target.tenants.add(tenant);
}

function addTenant({ tenants }: ChangedResources, tenant: string | undefined): void {
  if (tenant !== undefined) tenants.add(tenant);
}

/** Returns the allocation of the last decision; before the first decision, the allocation of the last table. */
function currentAllocation(record: ServiceRecord): ServiceAllocation | undefined {
  return record.decision === undefined ? record.allocation : allocationOf(record);
}

function areSameClaims(a: ReadonlyMap<number, HostClaim>, b: ReadonlyMap<number, HostClaim>): boolean {
  if (a.size !== b.size) return false;
  for (const [port, claim] of a) {
    const other = b.get(port);
    if (other === undefined || !isSameClaim(claim, other)) return false;
  }
  return true;
}

function idsOf(listeners: readonly ListenerEntry[]): string {
  return listeners.map(({ id }) => id).join();
}
