import type { ShareClaim } from '@weir/model/data-plane';
import type { Clock } from '@weir/runtime';
import type {
  Incarnation,
  LeaseExchange,
  LeaseGrant,
  LeaseMember,
  LeaseName,
  LeaseOwner,
  LeaseRequest,
  LeaseStore,
} from '../contract.ts';
import { LEASE_REGISTRATION_MS, MAX_LEASE_GAP_MS, MAX_LEASE_REPORT_AGE_MS, MAX_LEASE_SILENCE_MS } from '../limits.ts';
import type { MemoryConnection } from './memory-connection.ts';

export interface LeaseContent {
  /** When the last period of registration began, in milliseconds of the wall clock; undefined after a wipe until the first exchange. */
  openedAt: number | undefined;
  /** When any member exchanged leases last; undefined before the first exchange. */
  heardAt: number | undefined;
  /** By `<incarnation>:<node>`. */
  readonly members: Map<string, StoredMember>;
  /** By lease, then by member. */
  readonly leases: Map<string, Map<string, HeldLease>>;
}

interface StoredMember extends Incarnation {
  readonly heardAt: number;
  readonly sequence: number;
}

interface HeldLease {
  readonly held: number;
  readonly claim: ShareClaim;
}

/** Returns the content of a new store, without a period of registration, because no member can hold a lease of an earlier content. */
export function newLeaseContent(): LeaseContent {
  return { openedAt: Number.NEGATIVE_INFINITY, heardAt: undefined, members: new Map(), leases: new Map() };
}

/** Returns the content of a store that has lost its data. */
export function emptyLeaseContent(): LeaseContent {
  return { ...newLeaseContent(), openedAt: undefined };
}

export interface MemoryLeasesOptions {
  readonly connection: MemoryConnection;
  readonly clock: Clock;
}

export class MemoryLeases implements LeaseStore {
  content: LeaseContent = newLeaseContent();
  readonly #connection: MemoryConnection;
  readonly #clock: Clock;

  constructor({ connection, clock }: MemoryLeasesOptions) {
    this.#connection = connection;
    this.#clock = clock;
  }

  async exchange(exchange: LeaseExchange): Promise<readonly LeaseGrant[]> {
    this.#connection.assertReady();
    return exchangeLeases(this.content, exchange, this.#clock.now());
  }

  async release(node: string, life: number): Promise<void> {
    this.#connection.assertReady();
    this.content.members.delete(memberKey({ node, life }));
  }

  async keep(node: string, life: number): Promise<void> {
    this.#connection.assertReady();
    const { members } = this.content;
    const key = memberKey({ node, life });
    const member = members.get(key);
    if (member !== undefined) members.set(key, { ...member, heardAt: this.#clock.now() });
  }

  async members(): Promise<readonly LeaseMember[]> {
    this.#connection.assertReady();
    const { members, openedAt = 0, heardAt: lastExchangeAt = 0 } = this.content;
    return [...members.values()].map(({ node, life, heardAt }) => ({
      node,
      life,
      silentMs: Math.max(0, lastExchangeAt - Math.max(heardAt, openedAt)),
    }));
  }

  async openConnections(owner: LeaseOwner): Promise<number> {
    this.#connection.assertReady();
    const { leases, members } = this.content;
    const holders = [...(leases.get(leaseKey({ owner, resource: 'connections' })) ?? [])];
    return holders.reduce((sum, [member, { claim }]) => sum + (members.has(member) ? claim.floor : 0), 0);
  }
}

/** Does what `exchange-leases.lua` does in Redis. `now` is in milliseconds of the wall clock. */
export function exchangeLeases(content: LeaseContent, exchange: LeaseExchange, now: number): readonly LeaseGrant[] {
  const { node, life, sequence, mayRaise, requests } = exchange;
  const own = memberKey(exchange);
  if ((content.members.get(own)?.sequence ?? -1) >= sequence) return [];
  const gap = now - (content.heardAt ?? now);
  if (content.openedAt === undefined || gap < 0 || gap > MAX_LEASE_GAP_MS) content.openedAt = now;
  content.heardAt = now;
  content.members.set(own, { node, life, sequence, heardAt: now });
  const openMs = now - content.openedAt;
  for (const [key, member] of content.members) {
    const silentFor = now - member.heardAt;
    // After the clock was set back, the silence begins anew.
    if (silentFor < 0) content.members.set(key, { ...member, heardAt: now });
    else if (openMs >= MAX_LEASE_SILENCE_MS && silentFor >= MAX_LEASE_SILENCE_MS) content.members.delete(key);
  }
  const isRaisable = mayRaise && openMs >= LEASE_REGISTRATION_MS;
  return requests.map((request) => exchangeLease(content, request, { own, mayRaise: isRaisable, now }));
}

function exchangeLease(
  content: LeaseContent,
  request: LeaseRequest,
  { own, mayRaise, now }: { readonly own: string; readonly mayRaise: boolean; readonly now: number },
): LeaseGrant {
  const { limit, held, wanted, claim } = request;
  const key = leaseKey(request);
  const holders = content.leases.get(key) ?? new Map<string, HeldLease>();
  content.leases.set(key, holders);
  const others: ShareClaim[] = [];
  let free = limit;
  let rank: number | undefined;
  for (const [member, lease] of holders) {
    const heardAt = content.members.get(member)?.heardAt;
    if (member === own) {
      rank = others.length;
    } else if (heardAt !== undefined) {
      others.push(now - heardAt >= MAX_LEASE_REPORT_AGE_MS ? fullUse(lease) : lease.claim);
      free -= lease.held;
    } else {
      holders.delete(member);
    }
  }
  const share = wanted > held ? Math.max(held, mayRaise ? Math.min(wanted, free) : 0) : wanted;
  if (held > 0 || wanted > 0) holders.set(own, { held: Math.max(held, share), claim });
  else holders.delete(own);
  if (holders.size === 0) content.leases.delete(key);
  return { share, others, rank: rank ?? others.length };
}

/** Returns the claim of a silent member: the member may be using all that it holds, because its reports do not arrive. */
function fullUse({ held, claim }: HeldLease): ShareClaim {
  return { ...claim, demand: Math.max(claim.demand, held), used: held };
}

function memberKey({ node, life }: Incarnation): string {
  return `${life}:${node}`;
}

function leaseKey({ owner, resource }: LeaseName): string {
  return `${owner.kind}.${owner.kind === 'tenant' ? owner.name : owner.uid}:${resource}`;
}
