import { createHash } from 'node:crypto';
import { connect, createServer } from 'node:net';
import type { ListenerKey, TablePosition } from '@weir/model/data-plane';
import { type Clock, type Timer, wait } from '@weir/runtime';
import { Predecessor } from './predecessor.ts';
import { Successor } from './successor.ts';
import type { TakeoverActions } from './takeover-actions.ts';

// The lock that allows only one proxy per fleet and node to serve. The lock is an abstract Unix socket. Like the ports
// of the proxy, the socket belongs to the network namespace, and the kernel releases it when the process ends for any
// reason. One proxy hands over the node to another with messages on connections to this socket (ADR 9).

/**
 * The wait before another attempt to take the lock, if an attempt failed or the proxy that has the lock cannot be
 * reached.
 */
const LOCK_RETRY_INTERVAL_MS = 250;
/**
 * The wait before an attempt to take a lock that was just released. The wait is not 0, because otherwise two proxies
 * would loop without a pause if one of them closed every connection at once.
 */
const LOCK_RETRY_AFTER_RELEASE_MS = 5;
const LEAVE_POLL_INTERVAL_MS = 20;
const MAX_LOCK_NAME_BYTES = 100;
/** How many processes may wait for the lock. An upgrade needs one; any process of the host may connect. */
const MAX_WAITING = 16;

/** Which proxy serves this node, as seen by this proxy. */
export type NodeOwnership =
  /** Only this proxy serves the node. */
  | { readonly kind: 'own' }
  /**
   * The predecessor is handing the node over, and this proxy opens the same listeners. `open` lists the predecessor's
   * listeners.
   */
  | { readonly kind: 'joining'; readonly open: readonly ListenerKey[] }
  /** Another proxy serves the node. `handedOver` is true if this proxy served the node before and handed it over. */
  | { readonly kind: 'other'; readonly reason: string; readonly handedOver: boolean };

export interface NodeLockOptions {
  readonly fleet: string;
  readonly node: string;
  readonly clock: Clock;
  readonly actions: TakeoverActions;
  /** Returns the position of the table that this proxy could serve now; undefined if it cannot serve yet. */
  readonly tableReadyToServe: () => TablePosition | undefined;
  readonly onOwnershipChange: (ownership: NodeOwnership) => void;
}

export class NodeLock {
  readonly #options: NodeLockOptions;
  readonly #path: string;
  #predecessor: Predecessor | undefined;
  #successor: Successor | undefined;
  #retry: Timer | undefined;
  #hasServed = false;
  #isListening = false;
  #isReleased = false;

  constructor(options: NodeLockOptions) {
    this.#options = options;
    this.#path = lockPathFor(options.fleet, options.node);
  }

  /**
   * Tries to take the lock. Resolves when the first attempt has succeeded or failed. Continues to try if another proxy
   * has the lock.
   */
  acquire(): Promise<void> {
    const { promise, resolve } = Promise.withResolvers<void>();
    const server = createServer((socket) => predecessor.addWaiting(socket));
    server.maxConnections = MAX_WAITING;
    const { clock, actions } = this.#options;
    const predecessor = new Predecessor(server, { clock, actions, onCeded: () => this.#onHandedOver() });
    server.once('error', (error: NodeJS.ErrnoException) => {
      this.#onAcquireFailed(error);
      resolve();
    });
    server.listen({ path: this.#path }, () => {
      if (this.#isReleased) server.close();
      else this.#onAcquired(predecessor);
      resolve();
    });
    return promise;
  }

  /**
   * To be called when every listener is open or has failed. `problem` is why a listener that the predecessor has open
   * could not be opened; undefined if there is no such listener.
   */
  onListenersSettled(problem: string | undefined): void {
    this.#successor?.settled(problem);
  }

  /**
   * Notifies waiting proxies that this proxy is about to end. Resolves when a successor has taken over, no waiting
   * proxy can take over, `limitMs` has passed, or `signal` aborts. To be called before a drain.
   */
  async leave(limitMs: number, signal: AbortSignal): Promise<void> {
    const { clock } = this.#options;
    const end = clock.monotonic() + limitMs;
    while (this.#predecessor?.announceLeaving() === true && clock.monotonic() < end && !signal.aborted) {
      await wait(clock, LEAVE_POLL_INTERVAL_MS, signal).catch(() => undefined);
    }
  }

  /** Releases the lock for good. */
  release(): void {
    this.#isReleased = true;
    this.#retry?.cancel();
    this.#successor?.end();
    this.#predecessor?.release();
    this.#predecessor = undefined;
  }

  /** Reports whether another proxy has taken the lock. To be called after `release`. */
  isHeldByOther(): Promise<boolean> {
    return isSocketListening(this.#path);
  }

  #onAcquired(predecessor: Predecessor): void {
    this.#predecessor = predecessor;
    this.#hasServed = true;
    this.#isListening = true;
    this.#successor = undefined;
    this.#options.onOwnershipChange({ kind: 'own' });
  }

  #onHandedOver(): void {
    this.#predecessor = undefined;
    this.#isListening = false;
    if (!this.#isReleased) this.#waitForNode();
  }

  #onAcquireFailed(error: NodeJS.ErrnoException): void {
    const { node } = this.#options;
    if (this.#isReleased) return;
    if (error.code === 'EADDRINUSE') {
      this.#waitForNode();
      return;
    }
    this.#reportOther(`failed to take the lock of node ${node}: ${error.message}; retrying`);
    this.#retryIn(LOCK_RETRY_INTERVAL_MS);
  }

  #waitForNode(): void {
    const { fleet, node, clock, tableReadyToServe, onOwnershipChange } = this.#options;
    this.#reportOther(
      this.#hasServed
        ? `another proxy has taken over node ${node} of fleet ${fleet} on this host`
        : `another proxy serves node ${node} of fleet ${fleet} on this host and has not handed over the node; stop that proxy, or give this proxy another WEIR_NODE`,
    );
    this.#successor = new Successor({
      path: this.#path,
      clock,
      requestsNode: this.#hasServed ? 'when-it-leaves' : 'at-once',
      tableReadyToServe,
      onJoin: (open) => {
        this.#isListening = true;
        onOwnershipChange({ kind: 'joining', open });
      },
      onRejected: (reason) => {
        this.#isListening = false;
        this.#reportOther(`cannot take over node ${node} of fleet ${fleet} from the proxy that serves it: ${reason}`);
      },
      onLockReleased: (before) => this.#onLockReleased(before),
    });
  }

  #reportOther(reason: string): void {
    this.#options.onOwnershipChange({ kind: 'other', reason, handedOver: this.#hasServed });
  }

  #onLockReleased(before: 'reached' | 'unreachable'): void {
    // If this proxy already listens, it tries to take the lock at once. Otherwise it waits first.
    if (this.#isListening) void this.acquire();
    else this.#retryIn(before === 'reached' ? LOCK_RETRY_AFTER_RELEASE_MS : LOCK_RETRY_INTERVAL_MS);
  }

  #retryIn(ms: number): void {
    if (this.#isReleased) return;
    this.#retry?.cancel();
    this.#retry = this.#options.clock.setTimeout(() => void this.acquire(), ms);
  }
}

function lockPathFor(fleet: string, node: string): string {
  const name = `weir/${fleet}/${node}`;
  // The path of a Unix socket has at most 107 bytes; a node name may have 253.
  return `\0${name.length <= MAX_LOCK_NAME_BYTES ? name : `weir/${createHash('sha256').update(name).digest('hex')}`}`;
}

/** Reports whether a process listens on this Unix socket. */
export function isSocketListening(path: string): Promise<boolean> {
  const { promise, resolve } = Promise.withResolvers<boolean>();
  const socket = connect({ path });
  socket.on('connect', () => {
    socket.destroy();
    resolve(true);
  });
  socket.on('error', () => resolve(false));
  return promise;
}
