// The side of a hand-over that waits. It asks the one that serves as soon as it could serve itself; one that has handed
// over before does not ask again, or two that were started by mistake would take the node from each other for ever.
import { connect, type Socket } from 'node:net';
import type { ListenerKey, Position } from '@weir/model/data-plane';
import type { Clock, Timer } from '@weir/runtime';
import { readLines, writeLine } from './lines.ts';
import { parseReply, type Reply } from './messages.ts';

const ASK_EACH_MS = 250;
/** After it was refused, or could not: what is wrong will not be right at once. */
const AGAIN_MS = 15_000;

export interface NewcomerOptions {
  readonly path: string;
  readonly clock: Clock;
  readonly asks: 'at-once' | 'when-it-leaves';
  /** The table that it could serve now; undefined: not yet. */
  readonly prepared: () => Position | undefined;
  /** It may listen beside the one that serves, where that one does. */
  readonly onJoin: (open: readonly ListenerKey[]) => void;
  /** It must not listen any more: why. */
  readonly onParted: (reason: string) => void;
  /** The one that served has gone, or let go of the lock; once. `before`: whether we had reached it. */
  readonly onFree: (before: 'reached' | 'unreachable') => void;
}

export class Newcomer {
  readonly #options: NewcomerOptions;
  readonly #socket: Socket;
  #asks: boolean;
  #isConnected = false;
  #hasJoined = false;
  #hasSettled = false;
  #isEnded = false;
  #timer: Timer | undefined;

  constructor(options: NewcomerOptions) {
    this.#options = options;
    this.#asks = options.asks === 'at-once';
    this.#socket = connect({ path: options.path });
    this.#socket.on('connect', () => {
      this.#isConnected = true;
      writeLine(this.#socket, { kind: 'hello' });
      this.#ask();
    });
    this.#socket.on('error', () => undefined);
    this.#socket.on('close', () => this.#free());
    readLines(this.#socket, (line) => {
      const reply = parseReply(line);
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
    this.#part(problem);
  }

  end(): void {
    this.#isEnded = true;
    this.#timer?.cancel();
    this.#socket.destroy();
  }

  #take(reply: Reply): void {
    const { onJoin } = this.#options;
    switch (reply.kind) {
      case 'leaving':
        this.#asks = true;
        this.#ask();
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
        if (this.#hasJoined) this.#part(reply.reason);
        return;
      case 'yours':
        this.#free();
    }
  }

  #ask(): void {
    if (!this.#asks || this.#hasJoined || this.#isEnded || !this.#isConnected) return;
    const applied = this.#options.prepared();
    if (applied !== undefined) writeLine(this.#socket, { kind: 'ready', applied });
    this.#askIn(ASK_EACH_MS);
  }

  #part(reason: string): void {
    this.#hasJoined = false;
    this.#askIn(AGAIN_MS);
    this.#options.onParted(reason);
  }

  #askIn(ms: number): void {
    this.#timer?.cancel();
    this.#timer = this.#options.clock.setTimeout(() => this.#ask(), ms);
  }

  #free(): void {
    if (this.#isEnded) return;
    this.#isEnded = true;
    this.#timer?.cancel();
    this.#options.onFree(this.#isConnected ? 'reached' : 'unreachable');
    // Kept until the lock was tried: its end lets those in who wait behind us.
    setImmediate(() => this.#socket.destroy());
  }
}
