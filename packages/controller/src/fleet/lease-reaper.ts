// Releases the shares of limits of proxies that have ended without releasing them. A proxy that lives but has lost Redis
// keeps its shares, because its clients still use them.
import { connect } from 'node:net';
import type { AdminAddress, Heartbeat } from '@weir/model';
import { type Clock, isLoopback, type Logger, Loop } from '@weir/runtime';
import type { Incarnation, LeaseMember, LeaseStore } from '@weir/store';
import { logLoopFailure } from '../controller/reconcile-loop.ts';

const CHECK_INTERVAL_MS = 250;
const RETRY_MS = [1_000, 5_000] as const;
/** If no heartbeats were read for this time, this controller may not be the leader any more, and checks nothing. */
const MAX_HEARTBEATS_AGE_MS = 3_000;
/** A proxy that lives exchanges leases at least every 0.5 s while it reaches the store. */
const MAX_EXCHANGE_GAP_MS = 700;
const PROBE_TIMEOUT_MS = 300;
/** The addresses that stand for all interfaces. The controller cannot connect to a proxy at such an address. */
const ANY_ADDRESSES: readonly string[] = ['0.0.0.0', '::'];

export interface LeaseReaperOptions {
  readonly leases: Pick<LeaseStore, 'members' | 'keep' | 'release'>;
  readonly clock: Clock;
  readonly log: Logger;
  /** By default `probeAddress`. */
  readonly probe?: (address: AdminAddress) => Promise<ProbeAnswer>;
}

/** How the host of a proxy answers an attempt to connect. `none`: not at all, so the host or the network may be down. */
export type ProbeAnswer = 'accepted' | 'refused' | 'none';

/**
 * Decides which members of the leases have ended. A member has ended if it has exchanged no lease for `MAX_EXCHANGE_GAP_MS`
 * and its host refuses connections to the address of its admin server, or if it has no heartbeat and its host does not accept
 * such connections. The reaper decides nothing if the address is unknown, a wildcard or a loopback address, or if another
 * incarnation of the node is alive, which may have the same address. The shares then expire after `MAX_LEASE_SILENCE_MS`, or
 * the other incarnation releases them when it starts.
 */
export class LeaseReaper {
  readonly #options: LeaseReaperOptions;
  readonly #loop: Loop;
  readonly #adminAddresses = new Map<string, AdminAddress>();
  /** The incarnations with a heartbeat, by node. */
  #aliveByNode: ReadonlyMap<string, readonly Incarnation[]> = new Map();
  #heartbeatsReadAt = Number.NEGATIVE_INFINITY;

  constructor(options: LeaseReaperOptions) {
    this.#options = options;
    const { clock, log } = options;
    this.#loop = new Loop({
      gapMs: CHECK_INTERVAL_MS,
      resyncMs: () => {
        const isCurrent = clock.monotonic() - this.#heartbeatsReadAt < MAX_HEARTBEATS_AGE_MS;
        return isCurrent ? CHECK_INTERVAL_MS : Number.POSITIVE_INFINITY;
      },
      retryMs: RETRY_MS,
      clock,
      run: () => this.#reap(),
      onError: logLoopFailure(log, 'failed to release the shares of ended proxies; retrying'),
    });
  }

  /** To be called with the heartbeats of all live proxies after each read. */
  onHeartbeats(heartbeats: readonly Heartbeat[]): void {
    this.#aliveByNode = Map.groupBy(heartbeats, ({ node }) => node);
    this.#heartbeatsReadAt = this.#options.clock.monotonic();
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
    this.#forgetAddressesExcept([...members, ...[...this.#aliveByNode.values()].flat()]);
    await Promise.all(members.map((member) => this.#check(member)));
  }

  async #check(member: LeaseMember): Promise<void> {
    const { leases, log, probe = probeAddress } = this.#options;
    const { node, life, silentMs } = member;
    const address = this.#adminAddresses.get(keyOf(member));
    const alive = this.#aliveByNode.get(node) ?? [];
    if (address === undefined || alive.some((incarnation) => incarnation.life !== life)) return;
    const hasHeartbeat = alive.length > 0;
    if (hasHeartbeat && silentMs < MAX_EXCHANGE_GAP_MS) return;
    let answer = await probe(address);
    // A packet may have been lost.
    if (answer === 'none' && !hasHeartbeat) answer = await probe(address);
    if (answer === 'accepted') return leases.keep(node, life);
    if (answer === 'none' && hasHeartbeat) return;
    log.info({ node, life }, 'a proxy has ended; other proxies may use its shares of limits');
    await leases.release(node, life);
  }

  #forgetAddressesExcept(known: readonly Incarnation[]): void {
    const keys = new Set(known.map(keyOf));
    for (const key of this.#adminAddresses.keys()) if (!keys.has(key)) this.#adminAddresses.delete(key);
  }
}

/**
 * Connects to the address over TCP. The kernel accepts connections for a process that is stopped, and refuses them
 * (ECONNREFUSED) if no process listens.
 */
export function probeAddress({ host, port }: Pick<AdminAddress, 'host' | 'port'>): Promise<ProbeAnswer> {
  const { promise, resolve } = Promise.withResolvers<ProbeAnswer>();
  const socket = connect({ host, port, timeout: PROBE_TIMEOUT_MS });
  socket.once('connect', () => resolve('accepted'));
  socket.once('timeout', () => resolve('none'));
  socket.once('error', ({ code }: NodeJS.ErrnoException) => resolve(code === 'ECONNREFUSED' ? 'refused' : 'none'));
  return promise.finally(() => socket.destroy());
}

function keyOf({ node, life }: Incarnation): string {
  return `${life}:${node}`;
}
