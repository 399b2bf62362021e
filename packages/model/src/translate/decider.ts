// Who gets which ports, and whose limits are used up: what Services decide for each other. Whoever serves keeps what it has;
// the rest goes by rank. Asked again is only who is touched by what another one gave up or took.
import type { FleetSettings, ServiceObject } from '../snapshot.ts';
import type { ListenerEntry } from '../table/entry.ts';
import { decide } from './decision.ts';
import type { Held } from './held.ts';
import { bindAddressesFor, type Nodes } from './nodes.ts';
import { compareRanks, type Rank, rankOf } from './owned.ts';
import { portKey } from './port-key.ts';
import { Quota } from './quota.ts';
import type { ServiceBook } from './service-book.ts';
import { grantedTo, lacksSomething, type ServiceRecord } from './service-record.ts';
import { TakenPorts } from './taken-ports.ts';
import type { Tenancy } from './tenancy.ts';
import { Touched } from './touched.ts';

export interface World {
  readonly fleet: FleetSettings;
  readonly nodes: Nodes;
  readonly tenancy: Tenancy;
}

/**
 * One touches the next only while somebody gets or loses something: at worst each the next in a chain as long as there are
 * Services that wait. If it ever did not end: each decision stands on those before it, so the last ones are good, and nobody
 * else's Services wait for an end.
 */
const ROUNDS_EACH = 4;

export class Decider {
  readonly quota: Quota = new Quota();
  readonly #taken = new TakenPorts();
  readonly #services: Pick<ServiceBook, 'byUid'>;
  readonly #lacking = new Set<ServiceRecord>();
  /** By UID, until the first decision: what is not there then has lost it. */
  readonly #before: Map<string, readonly ListenerEntry[]>;

  /** `held`: what Services had before anything was decided here. */
  constructor(services: Pick<ServiceBook, 'byUid'>, held: Held) {
    this.#services = services;
    this.#before = Map.groupBy(held.listeners.values(), ({ service }) => service);
  }

  get lacking(): ReadonlySet<ServiceRecord> {
    return this.#lacking;
  }

  /** Decides those again, and whoever is touched by it. Returns all that were decided, and the tenants that use more or less. */
  decide(
    dirty: ReadonlySet<ServiceRecord>,
    gone: readonly ServiceRecord[],
    world: World,
  ): { readonly decided: ReadonlySet<ServiceRecord>; readonly tenants: ReadonlySet<string> } {
    for (const { uid, held } of dirty) {
      const before = this.#before.get(uid);
      if (before !== undefined) this.#taken.give(uid, before, held?.settings.hosts ?? []);
    }
    this.#before.clear();
    const ranks = new Map([...dirty].map((record) => [record, this.#rankOf(record)]));
    const decided = new Set<ServiceRecord>();
    const tenants = new Set<string>();
    let touched = new Touched();
    for (const record of gone) this.#remove(record, touched);
    for (const record of this.#inOrder(dirty, ranks)) this.#recount(record, { world, touched });
    let queue = this.#inOrder(new Set([...dirty, ...this.#waitingFor(touched)]), ranks);
    const most = ROUNDS_EACH * (1 + this.#lacking.size + queue.length);
    for (let round = 0; queue.length > 0 && round < most; round += 1) {
      for (const tenant of touched.tenants) tenants.add(tenant);
      touched = new Touched();
      for (const record of this.#round(queue, { world, touched, ranks })) decided.add(record);
      queue = this.#inOrder(this.#waitingFor(touched), ranks);
    }
    for (const tenant of touched.tenants) tenants.add(tenant);
    return { decided, tenants };
  }

  /**
   * One round. Who is touched by a decision of it and comes after it is asked in this round already: else somebody of a higher
   * rank would find taken what was given up just now, only because nothing of its own had changed.
   */
  *#round(
    queue: ServiceRecord[],
    { world, touched, ranks }: Pass & { readonly ranks: Ranks },
  ): Iterable<ServiceRecord> {
    const members = new Set(queue);
    const outside = new Set([...this.#lacking].filter((record) => !members.has(record)));
    for (let at = 0; at < queue.length; at += 1) {
      const record = queue[at] as ServiceRecord;
      const own = new Touched();
      this.#decideOne(record, { world, touched: own });
      touched.addAll(own);
      yield record;
      if (own.isNothing) continue;
      const after = [...outside].filter((other) => own.concerns(other) && this.#compare(record, other, ranks) < 0);
      for (const other of after) {
        outside.delete(other);
        const place = queue.findIndex((each, index) => index > at && this.#compare(other, each, ranks) < 0);
        queue.splice(place < 0 ? queue.length : place, 0, other);
      }
    }
  }

  #remove(record: ServiceRecord, touched: Touched): void {
    touched.addListeners(this.#taken.listenersOf(record.uid), this.#taken.hostsOf(record.uid));
    touched.addTenant(this.quota.tenantOf(record.uid));
    this.#taken.give(record.uid, [], []);
    this.quota.drop(record.uid);
    this.#lacking.delete(record);
  }

  /** Before anything new is granted: what serves still counts, also that of Services whose turn comes later. */
  #recount(record: ServiceRecord, { world, touched }: Pass): void {
    const { uid, service } = record;
    const { nodes, tenancy } = world;
    const before = this.#taken.listenersOf(uid);
    const hosts = this.#taken.hostsOf(uid);
    const stays = stillOf(before, service, nodes);
    if (stays.length < before.length) {
      touched.addListeners(before, hosts);
      this.#taken.give(uid, stays, hosts);
    }
    touched.addTenant(this.quota.tenantOf(uid));
    this.#countListeners(record, tenancy);
    touched.addTenant(this.quota.tenantOf(uid));
  }

  #countListeners({ uid, service, held }: ServiceRecord, tenancy: Tenancy): void {
    const membership = tenancy.membershipOf(service.namespace);
    const tenant = membership.kind === 'tenant' ? membership.tenant.name : held?.tenant;
    const listeners = this.#taken.listenersOf(uid);
    const ports = new Set(listeners.map(portKey)).size;
    if (tenant !== undefined && ports > 0) this.quota.use(tenant, service, ports);
    else this.quota.drop(uid);
  }

  #decideOne(record: ServiceRecord, { world, touched }: Pass): void {
    const { uid, service } = record;
    const { fleet, nodes, tenancy } = world;
    const before = this.#taken.listenersOf(uid);
    const hostsBefore = this.#taken.hostsOf(uid);
    const usedBefore = this.#useOf(uid);
    // Asked again, it is not in its own way.
    this.#countListeners(record, tenancy);
    const decision = decide(service, {
      fleet,
      nodes,
      membership: tenancy.membershipOf(service.namespace),
      // What it was given in this call is not taken from it again.
      held: record.held ?? grantedTo(record),
      quota: this.quota,
      taken: this.#taken,
      holderText: (holder) => this.#holderText(service, holder, tenancy),
    });
    if (decision.settings === null) {
      this.#taken.give(uid, [], []);
      this.quota.drop(uid);
    }
    record.decision = decision;
    if (lacksSomething(record)) this.#lacking.add(record);
    else this.#lacking.delete(record);
    const after = this.#taken.listenersOf(uid);
    const hosts = this.#taken.hostsOf(uid);
    if (!isSameListeners(before, after) || hosts.join() !== hostsBefore.join()) {
      touched.addListeners(before, hostsBefore);
      touched.addListeners(after, hosts);
    }
    const used = this.#useOf(uid);
    if (used !== usedBefore) for (const each of [usedBefore, used]) touched.addTenant(each.split('\n')[0]);
  }

  /** Never another tenant's names. */
  #holderText(asking: ServiceObject, uid: string, tenancy: Tenancy): string {
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

  #waitingFor(touched: Touched): Set<ServiceRecord> {
    if (touched.isNothing) return new Set();
    return new Set([...this.#lacking].filter((record) => touched.concerns(record)));
  }

  #inOrder(records: ReadonlySet<ServiceRecord>, ranks: Ranks): ServiceRecord[] {
    return [...records].sort((a, b) => this.#compare(a, b, ranks));
  }

  #compare(a: ServiceRecord, b: ServiceRecord, ranks: Ranks): number {
    return compareRanks(this.#rankIn(ranks, a), this.#rankIn(ranks, b));
  }

  /** As it was when it was first asked for in this call. */
  #rankIn(ranks: Ranks, record: ServiceRecord): Rank {
    const known = ranks.get(record);
    if (known !== undefined) return known;
    const rank = this.#rankOf(record);
    ranks.set(record, rank);
    return rank;
  }

  #rankOf({ uid, service, held }: ServiceRecord): Rank {
    return rankOf(service, { hasPorts: this.#taken.listenersOf(uid).length > 0, isHeld: held !== undefined });
  }

  #useOf(uid: string): string {
    const tenant = this.quota.tenantOf(uid);
    return tenant === undefined ? '' : `${tenant}\n${this.quota.portsOf(uid)}`;
  }
}

type Ranks = Map<ServiceRecord, Rank>;

interface Pass {
  readonly world: World;
  readonly touched: Touched;
}

/** Those of a port that the Service still has, on an address that it still binds. */
function stillOf(listeners: readonly ListenerEntry[], service: ServiceObject, nodes: Nodes): ListenerEntry[] {
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

function isSameListeners(a: readonly ListenerEntry[], b: readonly ListenerEntry[]): boolean {
  return a.length === b.length && a.every(({ id }, index) => id === b[index]?.id);
}
