// Releases the shares of limits of proxies that have ended without releasing them. A proxy that lives but has lost Redis
// keeps its shares, because its clients still use them.
import { connect } from 'node:net';
import type { AdminAddress, Heartbeat } from '@weir/model';
import { type Clock, isLoopback, type Logger, Loop } from '@weir/runtime';
import type { Incarnation, LeaseStore } from '@weir/store';
import { logLoopFailure } from '../controller/reconcile-loop.ts';

const REAP_LOOP = { gapMs: 500, resyncMs: Number.POSITIVE_INFINITY, retryMs: [1_000, 5_000] } as const;
const PROBE_TIMEOUT_MS = 300;
const PROBES = 2;
/** The addresses that stand for all interfaces. The controller cannot connect to a proxy at such an address. */
const ANY_ADDRESSES: readonly string[] = ['0.0.0.0', '::'];

export interface LeaseReaperOptions {
  readonly leases: Pick<LeaseStore, 'members' | 'keep' | 'release'>;
  readonly clock: Clock;
  readonly log: Logger;
  /** Reports whether the kernel of a proxy's host accepts a connection at the address; by default `acceptsConnections`. */
  readonly probe?: (address: AdminAddress) => Promise<boolean>;
}

/**
 * Decides which members of the leases have ended: a member without a heartbeat has ended if its admin server accepts no
 * connection at the address of its last heartbeat. The reaper decides nothing if the address is unknown, a wildcard or a
 * loopback address, or if another incarnation of the node is alive, which may have the same address. The shares then
 * expire after `MAX_LEASE_SILENCE_MS`, or the other incarnation releases them when it starts.
 */
export class LeaseReaper {
  readonly #options: LeaseReaperOptions;
  readonly #loop: Loop;
  readonly #adminAddresses = new Map<string, AdminAddress>();
  #heartbeats: readonly Heartbeat[] = [];

  constructor(options: LeaseReaperOptions) {
    this.#options = options;
    const { clock, log } = options;
    this.#loop = new Loop({
      ...REAP_LOOP,
      clock,
      run: () => this.#reap(),
      onError: logLoopFailure(log, 'failed to release the shares of ended proxies; retrying'),
    });
  }

  /** To be called with the heartbeats of all live proxies after each read. */
  onHeartbeats(heartbeats: readonly Heartbeat[]): void {
    this.#heartbeats = heartbeats;
    for (const heartbeat of heartbeats) {
      const { admin } = heartbeat;
      if (admin !== undefined && !ANY_ADDRESSES.includes(admin.host) && !isLoopback(admin.host))
        this.#adminAddresses.set(keyOf(heartbeat), admin);
    }
    this.#loop.trigger();
  }

  close(): Promise<void> {
    return this.#loop.close();
  }

  async #reap(): Promise<void> {
    const members = await this.#options.leases.members();
    const liveNodes = new Set(this.#heartbeats.map(({ node }) => node));
    this.#forgetAddressesExcept([...members, ...this.#heartbeats]);
    await Promise.all(members.filter(({ node }) => !liveNodes.has(node)).map((member) => this.#check(member)));
  }

  async #check(member: Incarnation): Promise<void> {
    const { leases, log, probe = acceptsConnections } = this.#options;
    const address = this.#adminAddresses.get(keyOf(member));
    if (address === undefined) return;
    const { node, life } = member;
    for (let probes = 0; probes < PROBES; probes += 1) {
      if (await probe(address)) return leases.keep(node, life);
    }
    log.info({ node, life }, 'a proxy has ended; other proxies may use its shares of limits');
    await leases.release(node, life);
  }

  #forgetAddressesExcept(known: readonly Incarnation[]): void {
    const keys = new Set(known.map(keyOf));
    for (const key of this.#adminAddresses.keys()) if (!keys.has(key)) this.#adminAddresses.delete(key);
  }
}

/**
 * Reports whether a TCP connection to the address is accepted. The kernel also accepts connections for a process that is
 * stopped.
 */
export function acceptsConnections({ host, port }: Pick<AdminAddress, 'host' | 'port'>): Promise<boolean> {
  const { promise, resolve } = Promise.withResolvers<boolean>();
  const socket = connect({ host, port, timeout: PROBE_TIMEOUT_MS });
  socket.once('connect', () => resolve(true));
  socket.once('timeout', () => resolve(false));
  socket.once('error', () => resolve(false));
  return promise.finally(() => socket.destroy());
}

function keyOf({ node, life }: Incarnation): string {
  return `${life}:${node}`;
}
