// Releases the shares of limits of proxies that have ended without releasing them. A proxy that lives but has lost Redis
// keeps its shares, because its clients still use them.
import { connect } from 'node:net';
import type { AdminAddress, Heartbeat } from '@weir/model';
import { type Clock, isLoopback, type Logger, Loop } from '@weir/runtime';
import { type Incarnation, type LeaseMember, type LeaseStore, MAX_LEASE_SILENCE_MS } from '@weir/store';
import { logLoopFailure } from '../controller/reconcile-loop.ts';

const CHECK_INTERVAL_MS = 100;
const RETRY_MS = [1_000, 5_000] as const;
/** The maximum age of the heartbeats. With older heartbeats the reaper checks nothing, because this controller may have lost leadership. */
const MAX_HEARTBEATS_AGE_MS = 3_000;
/**
 * How long a member must be silent before the reaper probes the member. A live proxy usually calls the store every 0.5 s. The
 * clients that a proxy has admitted count for a rate for a second.
 */
const MIN_SILENCE_MS = 1_000;
/** How long a member must be silent before the reaper prolongs its shares. The shares expire after `MAX_LEASE_SILENCE_MS`, 60 s. */
const MIN_KEPT_SILENCE_MS = 30_000;
/** How long the reaper waits before it probes a member again that has not accepted a connection yet. */
const UNPROVEN_PAUSE_MS = 10_000;
/** How long the reaper does not probe a silent member that has accepted a connection. */
const ACCEPTED_PAUSE_MS = 1_000;
/**
 * How long a member without a heartbeat may be silent while another incarnation of its node reaches the store, for example because the
 * member was killed before it took the node over.
 */
const MAX_REPLACED_SILENCE_MS = 5_000;
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

/**
 * How the host of a proxy answers a connection attempt. `none` is a timeout or any other error: the host or the network may be
 * down.
 */
export type ProbeAnswer = 'accepted' | 'refused' | 'none';

interface AdminServer {
  readonly address: AdminAddress;
  /** Whether the server has ever accepted a connection of this controller. */
  hasAccepted: boolean;
  /** When the server was probed last, and when it last accepted a connection, in milliseconds of the monotonic clock. */
  probedAt: number;
  acceptedAt: number;
}

/**
 * Decides which members of the leases have ended. A member that has been silent for `MIN_SILENCE_MS` has ended in two cases:
 *
 * 1. The host of the member refuses connections to the admin server, which has accepted a connection before. Without an
 *    earlier connection, a firewall may be what refuses.
 * 2. The member has no heartbeat, and the host does not accept connections to the admin server.
 *
 * The reaper probes nothing if the address of the admin server is unknown, a wildcard or a loopback address, or if another
 * incarnation of the node is alive, which may have the same address. The shares then return after `MAX_LEASE_SILENCE_MS`, or after
 * `MAX_REPLACED_SILENCE_MS` if only the other incarnation has a heartbeat, or when the other incarnation alone serves the node.
 */
export class LeaseReaper {
  readonly #options: LeaseReaperOptions;
  readonly #loop: Loop;
  /** By `keyOf`. As in the last heartbeat of each incarnation: a proxy that drains may have given its admin port to its successor. */
  readonly #adminServers = new Map<string, AdminServer>();
  /** The incarnations with a heartbeat, by node. */
  #aliveByNode: ReadonlyMap<string, readonly Incarnation[]> = new Map();
  #heartbeatsReadAt = Number.NEGATIVE_INFINITY;

  constructor(options: LeaseReaperOptions) {
    this.#options = options;
    const { clock, log } = options;
    this.#loop = new Loop({
      gapMs: CHECK_INTERVAL_MS,
      resyncMs: () => (this.#hasCurrentHeartbeats ? CHECK_INTERVAL_MS : Number.POSITIVE_INFINITY),
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
    for (const heartbeat of heartbeats) this.#updateAdminServer(heartbeat);
    this.#loop.trigger();
  }

  close(): Promise<void> {
    return this.#loop.close();
  }

  get #hasCurrentHeartbeats(): boolean {
    return this.#options.clock.monotonic() - this.#heartbeatsReadAt < MAX_HEARTBEATS_AGE_MS;
  }

  #updateAdminServer(heartbeat: Heartbeat): void {
    const { admin } = heartbeat;
    const key = keyOf(heartbeat);
    const known = this.#adminServers.get(key)?.address;
    if (admin === undefined || ANY_ADDRESSES.includes(admin.host) || isLoopback(admin.host))
      this.#adminServers.delete(key);
    else if (admin.host !== known?.host || admin.port !== known.port)
      this.#adminServers.set(key, {
        address: admin,
        hasAccepted: false,
        probedAt: Number.NEGATIVE_INFINITY,
        acceptedAt: Number.NEGATIVE_INFINITY,
      });
  }

  async #reap(): Promise<void> {
    if (!this.#hasCurrentHeartbeats) return;
    const members = await this.#options.leases.members();
    this.#forgetServersExcept([...members, ...[...this.#aliveByNode.values()].flat()]);
    await Promise.all(members.map((member) => this.#check(member)));
  }

  async #check(member: LeaseMember): Promise<void> {
    const { leases, clock } = this.#options;
    const { node, life, silentMs } = member;
    const server = this.#adminServers.get(keyOf(member));
    const alive = this.#aliveByNode.get(node) ?? [];
    const hasHeartbeat = alive.some((incarnation) => incarnation.life === life);
    const hasOther = alive.some((incarnation) => incarnation.life !== life);
    if (server === undefined || hasOther) {
      const maxSilenceMs = hasOther && !hasHeartbeat ? MAX_REPLACED_SILENCE_MS : MAX_LEASE_SILENCE_MS;
      // The store itself expires a member only when another member exchanges a lease that both have.
      return silentMs >= maxSilenceMs ? this.#release(member) : undefined;
    }
    if (silentMs < MIN_SILENCE_MS) {
      const mayProbe = clock.monotonic() - server.probedAt >= UNPROVEN_PAUSE_MS;
      if (!server.hasAccepted && mayProbe) await this.#probe(server);
      return;
    }
    if (clock.monotonic() - server.acceptedAt < ACCEPTED_PAUSE_MS) return;
    let answer = await this.#probe(server);
    // Probes again, because a packet may have been lost. A member with a heartbeat is probed again in the next run.
    if (answer === 'none' && !hasHeartbeat) answer = await this.#probe(server);
    if (answer === 'accepted') return silentMs < MIN_KEPT_SILENCE_MS ? undefined : leases.keep(node, life);
    const isProof = answer === 'refused' && server.hasAccepted;
    if ((hasHeartbeat && !isProof) || !(await this.#isStillSilent(member))) return;
    await this.#release(member);
  }

  async #release({ node, life }: LeaseMember): Promise<void> {
    const { leases, log } = this.#options;
    log.info({ node, life }, 'a proxy has ended; other proxies may use its shares of limits');
    await leases.release(node, life);
  }

  async #probe(server: AdminServer): Promise<ProbeAnswer> {
    const { probe = probeAddress, clock } = this.#options;
    server.probedAt = clock.monotonic();
    const answer = await probe(server.address);
    server.hasAccepted ||= answer === 'accepted';
    if (answer === 'accepted') server.acceptedAt = clock.monotonic();
    return answer;
  }

  /** Reads the store again, because the member may have exchanged leases during the probes. */
  async #isStillSilent(member: LeaseMember): Promise<boolean> {
    const members = await this.#options.leases.members();
    const found = members.find((other) => keyOf(other) === keyOf(member));
    return found !== undefined && found.silentMs >= MIN_SILENCE_MS && this.#hasCurrentHeartbeats;
  }

  #forgetServersExcept(known: readonly Incarnation[]): void {
    const keys = new Set(known.map(keyOf));
    for (const key of this.#adminServers.keys()) if (!keys.has(key)) this.#adminServers.delete(key);
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
