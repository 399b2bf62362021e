// The side of a hand-over that serves: keeps whoever waits, and lets one of them listen beside us before we close. It goes
// on serving whatever the other one does or fails to do, until the other one has shown that it listens.
import type { Server, Socket } from 'node:net';
import type { ListenerKey, Position } from '@weir/model/data-plane';
import type { Clock, Timer } from '@weir/runtime';
import { readLines, writeLine } from './lines.ts';
import { parseRequest, type Reply, type Request } from './messages.ts';

/** For a successor to open all of its listeners; it is given up then, and may ask again. */
const JOIN_MS = 10_000;
/** The others who wait learn of the release only after the successor has had time to take the lock. */
const TAKE_MS = 1_000;

/** What the proxy does for a hand-over. */
export interface Ceding {
  /** Whether one with this table may take over; `isLeaving`: we are about to end anyway. */
  admits(applied: Position, at: { readonly isLeaving: boolean }): boolean;
  /** From now on no listener is opened or closed; returns those that are open. */
  freeze(): readonly ListenerKey[];
  thaw(): void;
  /** Why the successor cannot be relied on; undefined: it listens wherever we do. */
  objection(): Promise<string | undefined>;
  /** Closes all listeners; resolves when no worker has one any more. Connections run on. */
  cede(): Promise<void>;
}

export interface HolderOptions {
  readonly clock: Clock;
  readonly ceding: Ceding;
  /** The lock is free, and the successor knows. */
  readonly onCeded: () => void;
}

export class Holder {
  readonly #options: HolderOptions;
  readonly #server: Server;
  readonly #waiting = new Set<Socket>();
  /** Those who have said that they know how to take over. */
  readonly #able = new Set<Socket>();
  #successor: Socket | undefined;
  #deadline: Timer | undefined;
  #isLeaving = false;
  #hasCeded = false;

  constructor(server: Server, options: HolderOptions) {
    this.#server = server;
    this.#options = options;
  }

  /** Whoever waits for the lock learns of its release by the end of this connection, also when this process is killed. */
  letWait(socket: Socket): void {
    this.#waiting.add(socket);
    socket.on('error', () => socket.destroy());
    socket.on('close', () => this.#left(socket));
    readLines(socket, (line) => {
      const request = parseRequest(line);
      if (request === undefined) socket.destroy();
      else this.#answer(socket, request);
    });
    if (this.#isLeaving) this.#say(socket, { kind: 'leaving' });
  }

  /** Before we end: whoever can should take over. Whether anybody may. */
  leave(): boolean {
    if (!this.#isLeaving) for (const socket of this.#waiting) this.#say(socket, { kind: 'leaving' });
    this.#isLeaving = true;
    return this.#able.size > 0;
  }

  /** The lock is given back; whoever waits is told last by the end of its connection. */
  release(): void {
    this.#deadline?.cancel();
    this.#hasCeded = true;
    this.#server.close();
    for (const socket of this.#waiting) socket.destroy();
  }

  #answer(socket: Socket, request: Request): void {
    if (this.#hasCeded) return;
    switch (request.kind) {
      case 'hello':
        this.#able.add(socket);
        return;
      case 'ready':
        this.#able.add(socket);
        this.#invite(socket, request.applied);
        return;
      case 'listening':
        if (socket === this.#successor) void this.#cedeTo(socket);
        return;
      case 'abandon':
        if (socket === this.#successor) this.#giveUp();
    }
  }

  #invite(socket: Socket, applied: Position): void {
    const { ceding, clock } = this.#options;
    if (this.#successor !== undefined || !ceding.admits(applied, { isLeaving: this.#isLeaving })) {
      this.#say(socket, { kind: 'wait' });
      return;
    }
    this.#successor = socket;
    this.#deadline = clock.setTimeout(() => socket.destroy(), JOIN_MS);
    this.#say(socket, { kind: 'join', open: ceding.freeze() });
  }

  async #cedeTo(socket: Socket): Promise<void> {
    const { ceding, onCeded } = this.#options;
    const objection = await ceding.objection().catch(String);
    if (this.#successor !== socket || this.#hasCeded) return;
    if (objection !== undefined) {
      this.#say(socket, { kind: 'refused', reason: objection });
      this.#giveUp();
      return;
    }
    this.#deadline?.cancel();
    this.#hasCeded = true;
    await ceding.cede();
    // Closed first, so that the successor finds the lock free when it hears of it.
    this.#server.close();
    this.#say(socket, { kind: 'yours' });
    this.#endWaiting(socket);
    onCeded();
  }

  #endWaiting(successor: Socket): void {
    const end = (): void => {
      timer.cancel();
      for (const socket of this.#waiting) socket.destroy();
    };
    const timer = this.#options.clock.setTimeout(end, TAKE_MS);
    if (successor.destroyed) end();
    else successor.once('close', end);
  }

  #left(socket: Socket): void {
    this.#waiting.delete(socket);
    this.#able.delete(socket);
    if (socket === this.#successor && !this.#hasCeded) this.#giveUp();
  }

  #giveUp(): void {
    this.#deadline?.cancel();
    this.#successor = undefined;
    this.#options.ceding.thaw();
  }

  #say(socket: Socket, reply: Reply): void {
    writeLine(socket, reply);
  }
}
