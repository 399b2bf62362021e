import { createHash } from 'node:crypto';
import { connect, createServer } from 'node:net';
import type { ListenerKey, TablePosition } from '@weir/model/data-plane';
import { type Clock, type Timer, wait } from '@weir/runtime';
import { Predecessor, type TakeoverActions } from './predecessor.ts';
import { Successor } from './successor.ts';

// One serving proxy per fleet and node: an abstract Unix socket is the lock. It belongs to the network namespace, like the
// ports that it guards, and the kernel takes it back whatever happens to its holder. Over it one proxy hands its node to
// the next (ADR 9).
const LOCK_RETRY_INTERVAL_MS = 250;
/** Not at once: a holder that lets nobody wait must not be asked without end. */
const LOCK_RETRY_AFTER_RELEASE_MS = 5;
const LEAVE_POLL_INTERVAL_MS = 20;
const MAX_LOCK_NAME_BYTES = 100;

/** Who listens on this node, as far as we may. */
export type NodeOwnership =
  /** We, alone. */
  | { readonly kind: 'ours' }
  /** We may, beside the one that is about to hand over; it listens on these. */
  | { readonly kind: 'beside'; readonly open: readonly ListenerKey[] }
  /** Another one. `handedOver`: we did before, and it took over from us. */
  | { readonly kind: 'others'; readonly reason: string; readonly handedOver: boolean };

export interface NodeLockOptions {
  readonly fleet: string;
  readonly node: string;
  readonly clock: Clock;
  readonly actions: TakeoverActions;
  /** The table that could be served now; undefined: none yet. */
  readonly tableReadyToServe: () => TablePosition | undefined;
  readonly onOwnershipChange: (turn: NodeOwnership) => void;
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

  /** Resolves when it is known whether the lock is ours; goes on trying when it is not. */
  acquire(): Promise<void> {
    const { promise, resolve } = Promise.withResolvers<void>();
    const server = createServer((socket) => holder.addWaiting(socket));
    const { clock, actions } = this.#options;
    const holder = new Predecessor(server, { clock, actions, onCeded: () => this.#onHandedOver() });
    server.once('error', (error: NodeJS.ErrnoException) => {
      this.#onAcquireFailed(error);
      resolve();
    });
    server.listen({ path: this.#path }, () => {
      if (this.#isReleased) server.close();
      else this.#onAcquired(holder);
      resolve();
    });
    return promise;
  }

  /** Those whom we were to join have all been tried; `problem`: one that the other has could not be opened. */
  onListenersSettled(problem: string | undefined): void {
    this.#successor?.settled(problem);
  }

  /** Before a drain: somebody who waits may take over first. Resolves when nobody does, or has, or the time is over. */
  async leave(limitMs: number, signal: AbortSignal): Promise<void> {
    const { clock } = this.#options;
    const end = clock.monotonic() + limitMs;
    while (this.#predecessor?.announceLeaving() === true && clock.monotonic() < end && !signal.aborted) {
      await wait(clock, LEAVE_POLL_INTERVAL_MS, signal).catch(() => undefined);
    }
  }

  /** For good. */
  release(): void {
    this.#isReleased = true;
    this.#retry?.cancel();
    this.#successor?.end();
    this.#predecessor?.release();
    this.#predecessor = undefined;
  }

  /** After `release`: whether another proxy serves the node by now. */
  isHeldByOther(): Promise<boolean> {
    return isSocketListening(this.#path);
  }

  #onAcquired(holder: Predecessor): void {
    this.#predecessor = holder;
    this.#hasServed = true;
    this.#isListening = true;
    this.#successor = undefined;
    this.#options.onOwnershipChange({ kind: 'ours' });
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
    this.#reportOther(`cannot take the lock of node ${node}: ${error.message}; it is tried again`);
    this.#retryIn(LOCK_RETRY_INTERVAL_MS);
  }

  #waitForNode(): void {
    const { fleet, node, clock, tableReadyToServe, onOwnershipChange } = this.#options;
    this.#reportOther(
      this.#hasServed
        ? `another proxy has taken over node ${node} of fleet ${fleet} on this host`
        : `another proxy serves node ${node} of fleet ${fleet} on this host, and has not handed over; stop it, or give this one another WEIR_NODE`,
    );
    this.#successor = new Successor({
      path: this.#path,
      clock,
      requestsNode: this.#hasServed ? 'when-it-leaves' : 'at-once',
      tableReadyToServe,
      onJoin: (open) => {
        this.#isListening = true;
        onOwnershipChange({ kind: 'beside', open });
      },
      onRejected: (reason) => {
        this.#isListening = false;
        this.#reportOther(`cannot take over node ${node} of fleet ${fleet} from the proxy that serves it: ${reason}`);
      },
      onLockReleased: (before) => this.#onLockReleased(before),
    });
  }

  #reportOther(reason: string): void {
    this.#options.onOwnershipChange({ kind: 'others', reason, handedOver: this.#hasServed });
  }

  #onLockReleased(before: 'reached' | 'unreachable'): void {
    // Whoever listens already takes the lock at once; the others leave it to that one.
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
  // The kernel takes 107 bytes; a node may have a name of 253.
  return `\0${name.length <= MAX_LOCK_NAME_BYTES ? name : `weir/${createHash('sha256').update(name).digest('hex')}`}`;
}

/** Whether somebody listens on this Unix socket. */
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
