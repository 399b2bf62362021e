// One serving proxy per fleet and node: an abstract Unix socket is the lock. It belongs to the network namespace, like the
// ports that it guards, and the kernel takes it back whatever happens to its holder. Over it one proxy hands its node to
// the next (ADR 9).
import { createHash } from 'node:crypto';
import { createServer } from 'node:net';
import type { ListenerKey, Position } from '@weir/model/data-plane';
import { type Clock, type Timer, wait } from '@weir/runtime';
import { type Ceding, Holder } from './holder.ts';
import { isHeld } from './is-held.ts';
import { Newcomer } from './newcomer.ts';

const RETRY_MS = 250;
/** Not at once: a holder that lets nobody wait must not be asked without end. */
const RELEASED_MS = 5;
const LOOK_EACH_MS = 20;
const LONGEST_NAME = 100;

/** Who listens on this node, as far as we may. */
export type Turn =
  /** We, alone. */
  | { readonly kind: 'ours' }
  /** We may, beside the one that is about to hand over; it listens on these. */
  | { readonly kind: 'beside'; readonly open: readonly ListenerKey[] }
  /** Another one. `handedOver`: we did before, and it took over from us. */
  | { readonly kind: 'others'; readonly reason: string; readonly handedOver: boolean };

export interface NodeGuardOptions {
  readonly fleet: string;
  readonly node: string;
  readonly clock: Clock;
  readonly ceding: Ceding;
  /** The table that could be served now; undefined: none yet. */
  readonly prepared: () => Position | undefined;
  readonly onTurn: (turn: Turn) => void;
}

export class NodeGuard {
  readonly #options: NodeGuardOptions;
  readonly #path: string;
  #holder: Holder | undefined;
  #newcomer: Newcomer | undefined;
  #retry: Timer | undefined;
  #hasServed = false;
  #isListening = false;
  #isReleased = false;

  constructor(options: NodeGuardOptions) {
    this.#options = options;
    this.#path = lockOf(options.fleet, options.node);
  }

  /** Resolves when it is known whether the lock is ours; goes on trying when it is not. */
  take(): Promise<void> {
    const { promise, resolve } = Promise.withResolvers<void>();
    const server = createServer((socket) => holder.letWait(socket));
    const { clock, ceding } = this.#options;
    const holder = new Holder(server, { clock, ceding, onCeded: () => this.#ceded() });
    server.once('error', (error: NodeJS.ErrnoException) => {
      this.#failed(error);
      resolve();
    });
    server.listen({ path: this.#path }, () => {
      if (this.#isReleased) server.close();
      else this.#ours(holder);
      resolve();
    });
    return promise;
  }

  /** Those whom we were to join have all been tried; `problem`: one that the other has could not be opened. */
  settled(problem: string | undefined): void {
    this.#newcomer?.settled(problem);
  }

  /** Before a drain: somebody who waits may take over first. Resolves when nobody does, or has, or the time is over. */
  async leave(limitMs: number, signal: AbortSignal): Promise<void> {
    const { clock } = this.#options;
    const end = clock.monotonic() + limitMs;
    while (this.#holder?.leave() === true && clock.monotonic() < end && !signal.aborted) {
      await wait(clock, LOOK_EACH_MS, signal).catch(() => undefined);
    }
  }

  /** For good. */
  release(): void {
    this.#isReleased = true;
    this.#retry?.cancel();
    this.#newcomer?.end();
    this.#holder?.release();
    this.#holder = undefined;
  }

  /** After `release`: whether another proxy serves the node by now. */
  isTaken(): Promise<boolean> {
    return isHeld(this.#path);
  }

  #ours(holder: Holder): void {
    this.#holder = holder;
    this.#hasServed = true;
    this.#isListening = true;
    this.#newcomer = undefined;
    this.#options.onTurn({ kind: 'ours' });
  }

  #ceded(): void {
    this.#holder = undefined;
    this.#isListening = false;
    if (!this.#isReleased) this.#wait();
  }

  #failed(error: NodeJS.ErrnoException): void {
    const { node } = this.#options;
    if (this.#isReleased) return;
    if (error.code === 'EADDRINUSE') {
      this.#wait();
      return;
    }
    this.#others(`cannot take the lock of node ${node}: ${error.message}; it is tried again`);
    this.#tryLater(RETRY_MS);
  }

  #wait(): void {
    const { fleet, node, clock, prepared, onTurn } = this.#options;
    this.#others(
      this.#hasServed
        ? `another proxy has taken over node ${node} of fleet ${fleet} on this host`
        : `another proxy serves node ${node} of fleet ${fleet} on this host, and has not handed over; stop it, or give this one another WEIR_NODE`,
    );
    this.#newcomer = new Newcomer({
      path: this.#path,
      clock,
      asks: this.#hasServed ? 'when-it-leaves' : 'at-once',
      prepared,
      onJoin: (open) => {
        this.#isListening = true;
        onTurn({ kind: 'beside', open });
      },
      onParted: (reason) => {
        this.#isListening = false;
        this.#others(`cannot take over node ${node} of fleet ${fleet} from the proxy that serves it: ${reason}`);
      },
      onFree: (before) => this.#free(before),
    });
  }

  #others(reason: string): void {
    this.#options.onTurn({ kind: 'others', reason, handedOver: this.#hasServed });
  }

  #free(before: 'reached' | 'unreachable'): void {
    // Whoever listens already takes the lock at once; the others leave it to that one.
    if (this.#isListening) void this.take();
    else this.#tryLater(before === 'reached' ? RELEASED_MS : RETRY_MS);
  }

  #tryLater(ms: number): void {
    if (this.#isReleased) return;
    this.#retry?.cancel();
    this.#retry = this.#options.clock.setTimeout(() => void this.take(), ms);
  }
}

function lockOf(fleet: string, node: string): string {
  const name = `weir/${fleet}/${node}`;
  // The kernel takes 107 bytes; a node may have a name of 253.
  return `\0${name.length <= LONGEST_NAME ? name : `weir/${createHash('sha256').update(name).digest('hex')}`}`;
}
