// The side of a hand-over that waits. It asks the one that serves as soon as it could serve itself; one that has handed
// over before does not ask again, or two that were started by mistake would take the node from each other for ever.
import { connect, type Socket } from 'node:net';
import type { ListenerKey, TablePosition } from '@weir/model/data-plane';
import type { Clock, Timer } from '@weir/runtime';
import { parseTakeoverReply, readLines, type TakeoverReply, writeLine } from './messages.ts';

const REQUEST_INTERVAL_MS = 250;
/** After it was refused, or could not: what is wrong will not be right at once. */
const RETRY_AFTER_REFUSAL_MS = 15_000;

export interface SuccessorOptions {
  readonly path: string;
  readonly clock: Clock;
  readonly requestsNode: 'at-once' | 'when-it-leaves';
  /** The table that it could serve now; undefined: not yet. */
  readonly tableReadyToServe: () => TablePosition | undefined;
  /** It may listen beside the one that serves, where that one does. */
  readonly onJoin: (open: readonly ListenerKey[]) => void;
  /** It must not listen any more: why. */
  readonly onRejected: (reason: string) => void;
  /** The one that served has gone, or let go of the lock; once. `before`: whether we had reached it. */
  readonly onLockReleased: (before: 'reached' | 'unreachable') => void;
}

export class Successor {
  readonly #options: SuccessorOptions;
  readonly #socket: Socket;
  #requestsNode: boolean;
  #isConnected = false;
  #hasJoined = false;
  #hasSettled = false;
  #isEnded = false;
  #timer: Timer | undefined;

  constructor(options: SuccessorOptions) {
    this.#options = options;
    this.#requestsNode = options.requestsNode === 'at-once';
    this.#socket = connect({ path: options.path });
    this.#socket.on('connect', () => {
      this.#isConnected = true;
      writeLine(this.#socket, { kind: 'hello' });
      this.#requestNode();
    });
    this.#socket.on('error', () => undefined);
    this.#socket.on('close', () => this.#onPredecessorGone());
    readLines(this.#socket, (line) => {
      const reply = parseTakeoverReply(line);
      if (reply !== undefined) this.#take(reply);
    });
  }

  /** After `onJoin`: all listeners are settled; `problem`: one that the other has could not be opened. Said again: ignored. */
  settled(problem: string | undefined): void {
    if (!this.#hasJoined || this.#hasSettled) return;
    this.#hasSettled = true;
    if (problem === undefined) {
      writeLine(this.#socket, { kind: 'listening' });
      return;
    }
    writeLine(this.#socket, { kind: 'abandon' });
    this.#abandon(problem);
  }

  end(): void {
    this.#isEnded = true;
    this.#timer?.cancel();
    this.#socket.destroy();
  }

  #take(reply: TakeoverReply): void {
    const { onJoin } = this.#options;
    switch (reply.kind) {
      case 'leaving':
        this.#requestsNode = true;
        this.#requestNode();
        return;
      case 'wait':
        return;
      case 'join':
        this.#timer?.cancel();
        this.#hasJoined = true;
        this.#hasSettled = false;
        onJoin(reply.open);
        return;
      case 'refused':
        if (this.#hasJoined) this.#abandon(reply.reason);
        return;
      case 'yours':
        this.#onPredecessorGone();
    }
  }

  #requestNode(): void {
    if (!this.#requestsNode || this.#hasJoined || this.#isEnded || !this.#isConnected) return;
    const applied = this.#options.tableReadyToServe();
    if (applied !== undefined) writeLine(this.#socket, { kind: 'ready', applied });
    this.#requestNodeIn(REQUEST_INTERVAL_MS);
  }

  #abandon(reason: string): void {
    this.#hasJoined = false;
    this.#requestNodeIn(RETRY_AFTER_REFUSAL_MS);
    this.#options.onRejected(reason);
  }

  #requestNodeIn(ms: number): void {
    this.#timer?.cancel();
    this.#timer = this.#options.clock.setTimeout(() => this.#requestNode(), ms);
  }

  #onPredecessorGone(): void {
    if (this.#isEnded) return;
    this.#isEnded = true;
    this.#timer?.cancel();
    this.#options.onLockReleased(this.#isConnected ? 'reached' : 'unreachable');
    // Kept until the lock was tried: its end lets those in who wait behind us.
    setImmediate(() => this.#socket.destroy());
  }
}
