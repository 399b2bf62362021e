import assert from 'node:assert/strict';
import type { ShareClaim } from '@weir/model/data-plane';
import type { LeaseExchange, LeaseGrant, LeaseMember, LeaseOwner, LeaseRequest, LeaseStore } from '../contract.ts';
import { StoreError } from '../errors.ts';
import {
  LEASE_REGISTRATION_MS,
  MAX_LEASE_GAP_MS,
  MAX_LEASE_REPORT_AGE_MS,
  MAX_LEASE_SILENCE_MS,
  MAX_LEASES_PER_EXCHANGE,
} from '../limits.ts';
import type { RedisCalls } from './connection/redis-connection.ts';
import type { Keys } from './keys.ts';
import { memberFor, parseMember } from './redis-heartbeats.ts';

export class RedisLeases implements LeaseStore {
  readonly #connection: RedisCalls;
  readonly #keys: Keys;

  constructor(connection: RedisCalls, keys: Keys) {
    this.#connection = connection;
    this.#keys = keys;
  }

  async exchange({ node, life, sequence, mayRaise, requests }: LeaseExchange): Promise<readonly LeaseGrant[]> {
    assert.ok(requests.length <= MAX_LEASES_PER_EXCHANGE, 'too many leases in one exchange');
    const { leaseOpen, leaseMembers, lease } = this.#keys;
    const times = [LEASE_REGISTRATION_MS, MAX_LEASE_GAP_MS, MAX_LEASE_SILENCE_MS, MAX_LEASE_REPORT_AGE_MS];
    const keys = [leaseOpen, leaseMembers, ...requests.map(lease)];
    const args = [memberFor(node, life), sequence, mayRaise ? 1 : 0, ...times, ...requests.flatMap(encodeRequest)];
    const reply = await this.#connection.run('exchange-leases', keys, args).catch(throwForbidden);
    return (reply as string[]).map(decodeGrant);
  }

  async release(node: string, life: number): Promise<void> {
    await this.#connection.call((redis) => redis.hdel(this.#keys.leaseMembers, memberFor(node, life)));
  }

  async keep(node: string, life: number): Promise<void> {
    await this.#connection.run('keep-lease-member', [this.#keys.leaseMembers], [memberFor(node, life)]);
  }

  async members(): Promise<readonly LeaseMember[]> {
    const { leaseOpen, leaseMembers } = this.#keys;
    const [open, members] = await this.#connection.call((redis) =>
      Promise.all([redis.get(leaseOpen), redis.hgetall(leaseMembers)]),
    );
    // `leaseOpen` holds `<opened> <last exchange>`. The field of a member holds `<last call> <sequence>`. Times are in milliseconds.
    const [openedAt = 0, lastExchangeAt = 0] = (open ?? '').split(' ').map(Number);
    return Object.entries(members).map(([member, value]) => {
      const heardAt = Number(value.split(' ')[0]);
      return { ...parseMember(member), silentMs: Math.max(0, lastExchangeAt - Math.max(heardAt, openedAt)) };
    });
  }

  async openConnections(owner: LeaseOwner): Promise<number> {
    const { lease, leaseMembers } = this.#keys;
    const [held, members] = await this.#connection.call((redis) =>
      Promise.all([redis.hgetall(lease({ owner, resource: 'connections' })), redis.hkeys(leaseMembers)]),
    );
    const isMember = new Set(members);
    return Object.entries(held).reduce((sum, [member, value]) => {
      const claim = value.slice(value.indexOf(' ') + 1);
      return sum + (isMember.has(member) ? decodeClaim(claim).floor : 0);
    }, 0);
  }
}

/** Rethrows an error of `exchange-leases`. A user without the right to leases gets FORBIDDEN, because all other calls work. */
function throwForbidden(thrown: unknown): never {
  const isDenied = thrown instanceof StoreError && thrown.message.includes('(NOPERM ');
  throw isDenied ? new StoreError('FORBIDDEN', thrown.message) : thrown;
}

function encodeRequest({ limit, held, wanted, claim }: LeaseRequest): (string | number)[] {
  return [limit, held, wanted, `${claim.demand} ${claim.weight} ${claim.floor} ${claim.used}`];
}

/** Decodes `<share> <rank>`, followed by the claim of each other member. */
function decodeGrant(text: string): LeaseGrant {
  const [first = '', ...claims] = text.split(';');
  const [share = 0, rank = 0] = first.split(' ').map(Number);
  return { share, others: claims.map(decodeClaim), rank };
}

/** Decodes demand, weight, floor and use, of which an earlier version has only the first three. A later version may have more. */
function decodeClaim(text: string): ShareClaim {
  const [demand, weight, floor, used] = text.split(' ').map(Number);
  // With another weight or with NaN, the member could not compute its share.
  const isValidWeight = weight !== undefined && weight > 0 && Number.isFinite(weight);
  return {
    demand: amountOf(demand),
    weight: isValidWeight ? weight : 1,
    floor: amountOf(floor),
    used: amountOf(used),
  };
}

function amountOf(value: number | undefined): number {
  return value !== undefined && value >= 0 && Number.isFinite(value) ? value : 0;
}
