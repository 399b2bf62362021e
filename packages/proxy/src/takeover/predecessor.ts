import type { Server, Socket } from 'node:net';
import type { TablePosition } from '@weir/model/data-plane';
import type { Clock, Timer } from '@weir/runtime';
import {
  MAX_REQUEST_CHARACTERS,
  parseTakeoverRequest,
  readLines,
  type TakeoverReply,
  type TakeoverRequest,
  writeLine,
} from './messages.ts';
import type { TakeoverActions } from './takeover-actions.ts';

// The predecessor is the proxy that serves the node when a takeover begins. It invites one successor at a time to open
// the same listeners. It hands over the node only if /proc/net shows that another process of its user listens on every
// address (`TakeoverActions.reasonToRefuse`).

/**
 * How long a successor may take to open its listeners. After this time the predecessor closes the successor's
 * connection. The successor may connect and ask again.
 */
const JOIN_TIMEOUT_MS = 10_000;
/** How long the successor has to take the lock before other waiting proxies learn that the lock is free. */
const LOCK_HANDOVER_MS = 1_000;

export interface PredecessorOptions {
  readonly clock: Clock;
  readonly actions: TakeoverActions;
  /** Called when the lock is free and the successor has been notified. */
  readonly onCeded: () => void;
}

export class Predecessor {
  readonly #options: PredecessorOptions;
  readonly #server: Server;
  readonly #waiting = new Set<Socket>();
  /** Connections on which `hello` or `ready` has arrived. */
  readonly #takeoverCapable = new Set<Socket>();
  #successor: Socket | undefined;
  #deadline: Timer | undefined;
  #isLeaving = false;
  #hasCeded = false;

  constructor(server: Server, options: PredecessorOptions) {
    this.#server = server;
    this.#options = options;
  }

  /**
   * Adds the connection of a waiting proxy. The connection ends when the lock becomes free, even if this process is
   * killed, so that the waiting proxy learns that the lock is free.
   */
  addWaiting(socket: Socket): void {
    this.#waiting.add(socket);
    socket.on('error', () => socket.destroy());
    socket.on('close', () => this.#onSocketClose(socket));
    readLines(socket, MAX_REQUEST_CHARACTERS, (line) => {
      const request = parseTakeoverRequest(line);
      if (request === undefined) socket.destroy();
      else this.#answer(socket, request);
    });
    if (this.#isLeaving) this.#send(socket, { kind: 'leaving' });
  }

  /** Notifies every waiting proxy that this proxy is about to end. Returns whether a waiting proxy can take over. */
  announceLeaving(): boolean {
    if (!this.#isLeaving) for (const socket of this.#waiting) this.#send(socket, { kind: 'leaving' });
    this.#isLeaving = true;
    return this.#takeoverCapable.size > 0;
  }

  /** Releases the lock, then closes every connection. */
  release(): void {
    this.#deadline?.cancel();
    this.#hasCeded = true;
    this.#server.close();
    for (const socket of this.#waiting) socket.destroy();
  }

  #answer(socket: Socket, request: TakeoverRequest): void {
    if (this.#hasCeded) return;
    switch (request.kind) {
      case 'hello':
        this.#takeoverCapable.add(socket);
        return;
      case 'ready':
        this.#takeoverCapable.add(socket);
        this.#inviteSuccessor(socket, request.applied);
        return;
      case 'listening':
        if (socket === this.#successor) void this.#cedeTo(socket);
        return;
      case 'abandon':
        if (socket === this.#successor) this.#abandonSuccessor();
    }
  }

  #inviteSuccessor(socket: Socket, applied: TablePosition): void {
    const { actions, clock } = this.#options;
    if (this.#successor !== undefined || !actions.mayTakeOver(applied, { isLeaving: this.#isLeaving })) {
      this.#send(socket, { kind: 'wait' });
      return;
    }
    this.#successor = socket;
    this.#deadline = clock.setTimeout(() => socket.destroy(), JOIN_TIMEOUT_MS);
    this.#send(socket, { kind: 'join', open: actions.freeze() });
  }

  async #cedeTo(socket: Socket): Promise<void> {
    const { actions, onCeded } = this.#options;
    const objection = await actions.reasonToRefuse().catch(String);
    if (this.#successor !== socket || this.#hasCeded) return;
    if (objection !== undefined) {
      this.#send(socket, { kind: 'refused', reason: objection });
      this.#abandonSuccessor();
      return;
    }
    this.#deadline?.cancel();
    this.#hasCeded = true;
    await actions.cede();
    // Releases the lock before `yours` is sent, because the successor tries to take the lock when it receives `yours`.
    this.#server.close();
    this.#send(socket, { kind: 'yours' });
    this.#endWaiting(socket);
    onCeded();
  }

  #endWaiting(successor: Socket): void {
    const end = (): void => {
      timer.cancel();
      for (const socket of this.#waiting) socket.destroy();
    };
    const timer = this.#options.clock.setTimeout(end, LOCK_HANDOVER_MS);
    if (successor.destroyed) end();
    else successor.once('close', end);
  }

  #onSocketClose(socket: Socket): void {
    this.#waiting.delete(socket);
    this.#takeoverCapable.delete(socket);
    if (socket === this.#successor && !this.#hasCeded) this.#abandonSuccessor();
  }

  #abandonSuccessor(): void {
    this.#deadline?.cancel();
    this.#successor = undefined;
    this.#options.actions.unfreeze();
  }

  #send(socket: Socket, reply: TakeoverReply): void {
    writeLine(socket, reply);
  }
}
