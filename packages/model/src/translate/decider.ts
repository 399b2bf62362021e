// Who gets which ports, and whose limits are used up: what Services decide for each other. Whoever serves keeps what it has;
// the rest goes by rank. Asked again is only who is touched by what another one gave up or took.
import type { FleetSettings, ServiceObject } from '../snapshot.ts';
import type { ListenerEntry } from '../table/entry.ts';
import { AskingOrder } from './asking-order.ts';
import { type Decision, decide } from './decision.ts';
import type { Held, HeldService } from './held.ts';
import { isSameListeners, stillOf } from './kept-listeners.ts';
import type { Nodes } from './nodes.ts';
import { heldPorts } from './placement.ts';
import { portKey } from './port-key.ts';
import { Quota } from './quota.ts';
import type { SecretBook } from './secret-book.ts';
import type { ServiceBook } from './service-book.ts';
import { grantedTo, lacksSomething, type ServiceRecord } from './service-record.ts';
import { TakenPorts } from './taken-ports.ts';
import type { Tenancy } from './tenancy.ts';
import { Touched } from './touched.ts';
import { Turns } from './turns.ts';
import { Waiting, type WaitingGroup } from './waiting.ts';

export interface World {
  readonly fleet: FleetSettings;
  readonly nodes: Nodes;
  readonly tenancy: Tenancy;
  readonly secrets: SecretBook;
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
  readonly #waiting = new Waiting();
  /** By UID, until the first decision: what is not there then has lost it. */
  readonly #before: Map<string, readonly ListenerEntry[]>;

  /** `held`: what Services had before anything was decided here. */
  constructor(services: Pick<ServiceBook, 'byUid'>, held: Held) {
    this.#services = services;
    this.#before = Map.groupBy(held.listeners.values(), ({ service }) => service);
  }

  /** Who wants what these have: they were told who is in their way. */
  neighboursOf(records: Iterable<ServiceRecord>): ReadonlySet<ServiceRecord> {
    const had = new Touched();
    for (const { uid } of records) had.addListeners(this.#taken.listenersOf(uid), this.#taken.hostsOf(uid));
    return this.#waiting.forPorts(had.ports);
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
    const order = new AskingOrder(this.#taken, dirty);
    const decided = new Set<ServiceRecord>();
    const tenants = new Set<string>();
    let touched = new Touched();
    for (const record of gone) this.#remove(record, touched);
    const inOrder = order.sorted(dirty);
    for (const record of inOrder) this.#recount(record, { world, touched });
    let turns = this.#turnsFor(inOrder, { touched, order, world });
    const most = ROUNDS_EACH * (1 + this.#waiting.size + dirty.size);
    for (let rounds = 0; rounds < most; rounds += 1) {
      for (const tenant of touched.tenants) tenants.add(tenant);
      touched = new Touched();
      const round = this.#round(turns, { world, touched });
      if (round.length === 0) break;
      for (const record of round) decided.add(record);
      turns = this.#turnsFor([], { touched, order, world });
    }
    return { decided, tenants };
  }

  /** Who has a turn: these, which are in order, and who waits for what was touched. */
  #turnsFor(first: readonly ServiceRecord[], { touched, order, world }: Pass & { readonly order: AskingOrder }): Turns {
    const { compare } = order;
    const isAnswered = (group: WaitingGroup): boolean => this.#isAnswered(group, world);
    const isStillTaken = ({ service, decision }: ServiceRecord): boolean =>
      decision?.isStillTaken?.((holder) => this.#holderText(service, holder, world.tenancy)) === true;
    const turns = new Turns({ compare, isAnswered, isStillTaken }, first);
    for (const record of this.#waiting.forPorts(touched.ports)) turns.add(record);
    this.#addGroups(turns, touched, world);
    return turns;
  }

  /**
   * One round; returns who was asked. Who is touched by a decision of it and comes after it is asked in this round already: else somebody
   * of a higher rank would find taken what was given up just now, only because nothing of its own had changed.
   */
  #round(turns: Turns, { world, touched }: Pass): readonly ServiceRecord[] {
    const asked: ServiceRecord[] = [];
    for (let record = turns.next(); record !== undefined; record = turns.next()) {
      const own = new Touched();
      this.#decideOne(record, { world, touched: own });
      asked.push(record);
      touched.addAll(own);
      for (const other of this.#waiting.forPorts(own.ports)) turns.add(other);
      this.#addGroups(turns, own, world);
    }
    return asked;
  }

  #addGroups(turns: Turns, { tenants }: Touched, world: World): void {
    for (const tenant of tenants)
      for (const group of this.#waiting.groupsOf(tenant)) if (!this.#isAnswered(group, world)) turns.addGroup(group);
  }

  /** Its tenant's limits leave it just as much as they did. */
  #isAnswered({ tenant: name, answers }: WaitingGroup, { tenancy }: World): boolean {
    const tenant = tenancy.tenants.get(name);
    return (
      tenant !== undefined && answers.every(({ question, answer }) => this.quota.answer(tenant, question) === answer)
    );
  }

  #remove(record: ServiceRecord, touched: Touched): void {
    touched.addListeners(this.#taken.listenersOf(record.uid), this.#taken.hostsOf(record.uid));
    touched.addTenant(this.quota.tenantOf(record.uid));
    this.#taken.give(record.uid, [], []);
    this.quota.drop(record.uid);
    this.#keepWaiting(record, undefined, touched);
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
    const usedBefore = this.#useOf(uid);
    this.#count(record, tenancy);
    this.#touchUse(usedBefore, this.#useOf(uid), touched);
  }

  /** What it has: its listeners, and ports that it was given and no node is there to serve. */
  #count(record: ServiceRecord, tenancy: Tenancy): void {
    const { uid, service } = record;
    const membership = tenancy.membershipOf(service.namespace);
    const tenant = membership.kind === 'tenant' ? membership.tenant.name : undefined;
    const isBound = heldPorts(this.#taken.listenersOf(uid));
    const given = keptBy(record)?.ports;
    const ports = service.ports.filter((port) => isBound(port) || given?.has(portKey(port)) === true).length;
    if (tenant !== undefined && ports > 0) this.quota.use(tenant, service, ports);
    else this.quota.drop(uid);
  }

  #decideOne(record: ServiceRecord, { world, touched }: Pass): void {
    const { uid, service } = record;
    const { fleet, nodes, tenancy, secrets } = world;
    const before = this.#taken.listenersOf(uid);
    const hostsBefore = this.#taken.hostsOf(uid);
    const usedBefore = this.#useOf(uid);
    // Asked again, it is not in its own way.
    this.#count(record, tenancy);
    const decision = decide(service, {
      fleet,
      nodes,
      secrets,
      membership: tenancy.membershipOf(service.namespace),
      held: keptBy(record),
      quota: this.quota,
      taken: this.#taken,
      holderText: (holder) => this.#holderText(service, holder, tenancy),
    });
    if (decision.settings === null) {
      this.#taken.give(uid, [], []);
      this.quota.drop(uid);
    }
    record.decision = decision;
    this.#keepWaiting(record, lacksSomething(record, nodes) ? decision : undefined, touched);
    const after = this.#taken.listenersOf(uid);
    const hosts = this.#taken.hostsOf(uid);
    if (!isSameListeners(before, after) || hosts.join() !== hostsBefore.join()) {
      touched.addListeners(before, hostsBefore);
      touched.addListeners(after, hosts);
    }
    this.#touchUse(usedBefore, this.#useOf(uid), touched);
  }

  /** Undefined: it lacks nothing. */
  #keepWaiting(record: ServiceRecord, decision: Decision | undefined, touched: Touched): void {
    const { uid } = record;
    const before = this.quota.waitsFor(uid);
    const asked = decision?.asked;
    const isRefused = asked?.answers.some(({ answer }) => typeof answer === 'string') === true;
    const now = isRefused ? asked?.tenant : undefined;
    if (decision === undefined) this.#waiting.delete(record);
    else this.#waiting.put(record, decision);
    if (before === now) return;
    const concerned = [before, now].flatMap((tenant) => tenant ?? []);
    const wereCrowded = concerned.map((tenant) => this.quota.isCrowded(tenant));
    this.quota.wait(uid, now);
    concerned.forEach((tenant, index) => {
      if (this.quota.isCrowded(tenant) !== wereCrowded[index]) touched.addTenant(tenant);
    });
  }

  #touchUse(before: string, now: string, touched: Touched): void {
    if (before !== now) for (const each of [before, now]) touched.addTenant(each.split('\n')[0]);
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

  #useOf(uid: string): string {
    const tenant = this.quota.tenantOf(uid);
    return tenant === undefined ? '' : `${tenant}\n${this.quota.portsOf(uid)}`;
  }
}

/** By its last decision: what it was given in this call is not taken from it again, and what it lost is not held any more. */
function keptBy(record: ServiceRecord): HeldService | undefined {
  return record.decision === undefined ? record.held : grantedTo(record);
}

interface Pass {
  readonly world: World;
  readonly touched: Touched;
}
