// The successor is the proxy that waits for the node in a takeover. It asks for the node as soon as it could serve. A
// proxy that has handed over the node does not ask for the node again until the other proxy leaves. Otherwise two
// proxies that were started by mistake would take the node from each other forever.
import { connect, type Socket } from 'node:net';
import type { ListenerKey, TablePosition } from '@weir/model/data-plane';
import type { Clock, Timer } from '@weir/runtime';
import { MAX_REPLY_CHARACTERS, parseTakeoverReply, readLines, type TakeoverReply, writeLine } from './messages.ts';

const REQUEST_INTERVAL_MS = 250;
/**
 * The wait after the predecessor has refused, or after this proxy could not open a listener. The wait is long, because
 * the cause probably lasts.
 */
const RETRY_AFTER_REFUSAL_MS = 15_000;

export interface SuccessorOptions {
  readonly path: string;
  readonly clock: Clock;
  readonly requestsNode: 'at-once' | 'when-it-leaves';
  /** Returns the position of the table that this proxy could serve now; undefined if it cannot serve yet. */
  readonly tableReadyToServe: () => TablePosition | undefined;
  /**
   * Called when this proxy may open its listeners next to the predecessor. `open` lists the predecessor's listeners.
   */
  readonly onJoin: (open: readonly ListenerKey[]) => void;
  /** Called when the takeover has failed and this proxy must close its listeners. */
  readonly onRejected: (reason: string) => void;
  /**
   * Called once, when the predecessor has ended or released the lock. `before` is `reached` if this proxy had been
   * connected to the predecessor.
   */
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
    readLines(this.#socket, MAX_REPLY_CHARACTERS, (line) => {
      const reply = parseTakeoverReply(line);
      if (reply !== undefined) this.#take(reply);
    });
  }

  /**
   * To be called after `onJoin`, when every listener is open or has failed. `problem` is why a listener that the
   * predecessor has open could not be opened; undefined if there is no such listener. Repeated calls are ignored.
   */
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
    // Closes the socket only after the attempt to take the lock, because the predecessor lets other waiting proxies try
    // when this socket closes.
    setImmediate(() => this.#socket.destroy());
  }
}
