import type { FleetSettings } from '../../fleet-settings.ts';
import type { ServiceObject } from '../../snapshot.ts';
import type { ListenerEntry } from '../../table/entry.ts';
import { type Decision, decideService } from '../decision.ts';
import { bindAddressesFor, type Nodes } from '../nodes.ts';
import type { SecretIndex } from '../secret-index.ts';
import { allocationOf, hasUnmetDemand, type ServiceRecord, type ServiceRegistry } from '../service-registry.ts';
import type { Tenancy } from '../tenancy.ts';
import { AllocationRound, PriorityOrder } from './allocation-round.ts';
import type { Allocations, ServiceAllocation } from './allocations.ts';
import { allocatedPortTest } from './placement.ts';
import { PortAllocations } from './port-allocations.ts';
import { portKey } from './port-key.ts';
import { Quota } from './quota.ts';
import { ChangedResources, type QuotaWaitGroup, WaitList } from './wait-list.ts';

// Who gets which ports, and whose limits are used up: what Services decide for each other. Whoever serves keeps what it has;
// the rest goes by rank. Asked again is only who is touched by what another one gave up or took.
export interface AllocationContext {
  readonly fleet: FleetSettings;
  readonly nodes: Nodes;
  readonly tenancy: Tenancy;
  readonly secrets: SecretIndex;
}

/**
 * One touches the next only while somebody gets or loses something: at worst each the next in a chain as long as there are
 * Services that wait. If it ever did not end: each decision stands on those before it, so the last ones are good, and nobody
 * else's Services wait for an end.
 */
const MAX_ROUNDS_PER_SERVICE = 4;

export class Allocator {
  readonly quota: Quota = new Quota();
  readonly #portAllocations = new PortAllocations();
  readonly #services: Pick<ServiceRegistry, 'byUid'>;
  readonly #waitList = new WaitList();
  /** By UID, until the first decision: what is not there then has lost it. */
  readonly #previousListeners: Map<string, readonly ListenerEntry[]>;

  /** `held`: what Services had before anything was decided here. */
  constructor(services: Pick<ServiceRegistry, 'byUid'>, held: Allocations) {
    this.#services = services;
    this.#previousListeners = Map.groupBy(held.listeners.values(), ({ service }) => service);
  }

  /** Who wants what these have: they were told who is in their way. */
  waitersFor(records: Iterable<ServiceRecord>): ReadonlySet<ServiceRecord> {
    const had = new ChangedResources();
    for (const { uid } of records)
      had.addListeners(this.#portAllocations.listenersOf(uid), this.#portAllocations.hostsOf(uid));
    return this.#waitList.waitersForPorts(had.portKeys);
  }

  /** Decides those again, and whoever is touched by it. Returns all that were decided, and the tenants that use more or less. */
  allocate(
    dirty: ReadonlySet<ServiceRecord>,
    gone: readonly ServiceRecord[],
    context: AllocationContext,
  ): { readonly decided: ReadonlySet<ServiceRecord>; readonly tenants: ReadonlySet<string> } {
    for (const { uid, allocation } of dirty) {
      const before = this.#previousListeners.get(uid);
      if (before !== undefined) this.#portAllocations.allocate(uid, before, allocation?.settings.hosts ?? []);
    }
    this.#previousListeners.clear();
    const order = new PriorityOrder(this.#portAllocations, dirty);
    const decided = new Set<ServiceRecord>();
    const tenants = new Set<string>();
    let changed = new ChangedResources();
    for (const record of gone) this.#release(record, changed);
    const inOrder = order.sorted(dirty);
    for (const record of inOrder) this.#dropLostListeners(record, { context, changed });
    let turns = this.#startRound(inOrder, { changed, order, context });
    const most = MAX_ROUNDS_PER_SERVICE * (1 + this.#waitList.size + dirty.size);
    for (let rounds = 0; rounds < most; rounds += 1) {
      for (const tenant of changed.tenants) tenants.add(tenant);
      changed = new ChangedResources();
      const round = this.#runRound(turns, { context, changed });
      if (round.length === 0) break;
      for (const record of round) decided.add(record);
      turns = this.#startRound([], { changed, order, context });
    }
    return { decided, tenants };
  }

  /** Who has a turn: these, which are in order, and who waits for what was touched. */
  #startRound(
    first: readonly ServiceRecord[],
    { changed, order, context }: AllocationPass & { readonly order: PriorityOrder },
  ): AllocationRound {
    const { compare } = order;
    const isQuotaUnchanged = (group: QuotaWaitGroup): boolean => this.#isQuotaUnchanged(group, context);
    const isStillRefused = ({ service, decision }: ServiceRecord): boolean =>
      decision?.isStillRefused?.((holder) => this.#ownerText(service, holder, context.tenancy)) === true;
    const turns = new AllocationRound({ compare, isQuotaUnchanged, isStillRefused }, first);
    for (const record of this.#waitList.waitersForPorts(changed.portKeys)) turns.addWaiter(record);
    this.#addGroups(turns, changed, context);
    return turns;
  }

  /**
   * One round; returns who was asked. Who is touched by a decision of it and comes after it is asked in this round already: else somebody
   * of a higher rank would find taken what was given up just now, only because nothing of its own had changed.
   */
  #runRound(turns: AllocationRound, { context, changed }: AllocationPass): readonly ServiceRecord[] {
    const asked: ServiceRecord[] = [];
    for (let record = turns.next(); record !== undefined; record = turns.next()) {
      const own = new ChangedResources();
      this.#decideService(record, { context, changed: own });
      asked.push(record);
      changed.addAll(own);
      for (const other of this.#waitList.waitersForPorts(own.portKeys)) turns.addWaiter(other);
      this.#addGroups(turns, own, context);
    }
    return asked;
  }

  #addGroups(turns: AllocationRound, { tenants }: ChangedResources, world: AllocationContext): void {
    for (const tenant of tenants)
      for (const group of this.#waitList.groupsOfTenant(tenant))
        if (!this.#isQuotaUnchanged(group, world)) turns.addGroup(group);
  }

  /** Its tenant's limits leave it just as much as they did. */
  #isQuotaUnchanged({ tenant: name, results }: QuotaWaitGroup, { tenancy }: AllocationContext): boolean {
    const tenant = tenancy.tenants.get(name);
    return (
      tenant !== undefined && results.every(({ question, answer }) => this.quota.evaluate(tenant, question) === answer)
    );
  }

  #release(record: ServiceRecord, touched: ChangedResources): void {
    touched.addListeners(this.#portAllocations.listenersOf(record.uid), this.#portAllocations.hostsOf(record.uid));
    touched.addTenant(this.quota.tenantOf(record.uid));
    this.#portAllocations.allocate(record.uid, [], []);
    this.quota.uncount(record.uid);
    this.#updateWaitList(record, undefined, touched);
  }

  /** Before anything new is granted: what serves still counts, also that of Services whose turn comes later. */
  #dropLostListeners(record: ServiceRecord, { context, changed }: AllocationPass): void {
    const { uid, service } = record;
    const { nodes, tenancy } = context;
    const before = this.#portAllocations.listenersOf(uid);
    const hosts = this.#portAllocations.hostsOf(uid);
    const stays = retainedListeners(before, service, nodes);
    if (stays.length < before.length) {
      changed.addListeners(before, hosts);
      this.#portAllocations.allocate(uid, stays, hosts);
    }
    const usedBefore = this.#usageKey(uid);
    this.#countUsage(record, tenancy);
    this.#noteUsageChange(usedBefore, this.#usageKey(uid), changed);
  }

  /** What it has: its listeners, and ports that it was given and no node is there to serve. */
  #countUsage(record: ServiceRecord, tenancy: Tenancy): void {
    const { uid, service } = record;
    const membership = tenancy.membershipOf(service.namespace);
    const tenant = membership.kind === 'tenant' ? membership.tenant.name : undefined;
    const isBound = allocatedPortTest(this.#portAllocations.listenersOf(uid));
    const given = currentAllocation(record)?.ports;
    const ports = service.ports.filter((port) => isBound(port) || given?.has(portKey(port)) === true).length;
    if (tenant !== undefined && ports > 0) this.quota.count(tenant, service, ports);
    else this.quota.uncount(uid);
  }

  #decideService(record: ServiceRecord, { context, changed }: AllocationPass): void {
    const { uid, service } = record;
    const { fleet, nodes, tenancy, secrets } = context;
    const before = this.#portAllocations.listenersOf(uid);
    const hostsBefore = this.#portAllocations.hostsOf(uid);
    const usedBefore = this.#usageKey(uid);
    // Asked again, it is not in its own way.
    this.#countUsage(record, tenancy);
    const decision = decideService(service, {
      fleet,
      nodes,
      secrets,
      membership: tenancy.membershipOf(service.namespace),
      allocation: currentAllocation(record),
      quota: this.quota,
      portAllocations: this.#portAllocations,
      ownerText: (holder) => this.#ownerText(service, holder, tenancy),
    });
    if (decision.settings === null) {
      this.#portAllocations.allocate(uid, [], []);
      this.quota.uncount(uid);
    }
    record.decision = decision;
    this.#updateWaitList(record, hasUnmetDemand(record, nodes) ? decision : undefined, changed);
    const after = this.#portAllocations.listenersOf(uid);
    const hosts = this.#portAllocations.hostsOf(uid);
    if (!hasSameListeners(before, after) || hosts.join() !== hostsBefore.join()) {
      changed.addListeners(before, hostsBefore);
      changed.addListeners(after, hosts);
    }
    this.#noteUsageChange(usedBefore, this.#usageKey(uid), changed);
  }

  /** Undefined: it lacks nothing. */
  #updateWaitList(record: ServiceRecord, decision: Decision | undefined, touched: ChangedResources): void {
    const { uid } = record;
    const before = this.quota.waitingTenantOf(uid);
    const asked = decision?.quotaDependency;
    const isRefused = asked?.results.some(({ answer }) => typeof answer === 'string') === true;
    const now = isRefused ? asked?.tenant : undefined;
    if (decision === undefined) this.#waitList.delete(record);
    else this.#waitList.put(record, decision);
    if (before === now) return;
    const concerned = [before, now].flatMap((tenant) => tenant ?? []);
    const wereCrowded = concerned.map((tenant) => this.quota.isCrowded(tenant));
    this.quota.setWaiting(uid, now);
    concerned.forEach((tenant, index) => {
      if (this.quota.isCrowded(tenant) !== wereCrowded[index]) touched.addTenant(tenant);
    });
  }

  #noteUsageChange(before: string, now: string, touched: ChangedResources): void {
    if (before !== now) for (const each of [before, now]) touched.addTenant(each.split('\n')[0]);
  }

  /** Never another tenant's names. */
  #ownerText(asking: ServiceObject, uid: string, tenancy: Tenancy): string {
    const tenantOf = ({ namespace }: ServiceObject): string | undefined => {
      const membership = tenancy.membershipOf(namespace);
      return membership.kind === 'tenant' ? membership.tenant.name : undefined;
    };
    const holder = this.#services.byUid(uid)?.service;
    const tenant = tenantOf(asking);
    // Two in dispute have no tenant in common.
    const isOwn = holder !== undefined && tenant !== undefined && tenantOf(holder) === tenant;
    return isOwn ? `Service ${holder.namespace}/${holder.name}` : 'another tenant';
  }

  #usageKey(uid: string): string {
    const tenant = this.quota.tenantOf(uid);
    return tenant === undefined ? '' : `${tenant}\n${this.quota.portsOf(uid)}`;
  }
}

/** By its last decision: what it was given in this call is not taken from it again, and what it lost is not held any more. */
function currentAllocation(record: ServiceRecord): ServiceAllocation | undefined {
  return record.decision === undefined ? record.allocation : allocationOf(record);
}

interface AllocationPass {
  readonly context: AllocationContext;
  readonly changed: ChangedResources;
}

/** Those of a port that the Service still has, on an address that it still binds. */
export function retainedListeners(
  listeners: readonly ListenerEntry[],
  service: ServiceObject,
  nodes: Nodes,
): ListenerEntry[] {
  const ports = new Set(service.ports.map(portKey));
  const bound = new Map<string, ReadonlySet<string>>();
  for (const name of new Set(listeners.map(({ node }) => node))) {
    const node = nodes.byName.get(name);
    bound.set(name, new Set(node === undefined ? [] : bindAddressesFor(node, service)));
  }
  return listeners.filter(
    (listener) => ports.has(portKey(listener)) && bound.get(listener.node)?.has(listener.address) === true,
  );
}

export function hasSameListeners(a: readonly ListenerEntry[], b: readonly ListenerEntry[]): boolean {
  return a.length === b.length && a.every(({ id }, index) => id === b[index]?.id);
}
