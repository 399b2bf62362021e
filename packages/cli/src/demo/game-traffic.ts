import { connect, type Socket } from 'node:net';
import { roundRobin, type Traffic, type TrafficTarget, untilClosed } from './traffic.ts';

const PLAYERS = 6;
const MOVE_INTERVAL_MS = 50;
const MOVE = Buffer.alloc(200, 'left, left, jump. ');
/** A move that is not answered by then is a failure, as a player would call it. */
const MAX_UNANSWERED_MOVES = 40;

/** Players who stay connected from the beginning to the end, move 20 times a second, and get every move back. */
export function startGameTraffic({ addresses, port }: TrafficTarget): Traffic {
  const address = roundRobin(addresses);
  const failures: string[] = [];
  const players = Array.from({ length: PLAYERS }, () => new Player({ host: address(), port }, failures));
  const timer = setInterval(() => {
    for (const player of players) player.move();
  }, MOVE_INTERVAL_MS);
  return {
    count: () => ({
      sentBytes: players.reduce((sum, player) => sum + player.socket.bytesWritten, 0),
      receivedBytes: players.reduce((sum, player) => sum + player.socket.bytesRead, 0),
      connections: players.length,
      failures,
    }),
    async stop() {
      clearInterval(timer);
      await Promise.all(players.map((player) => player.leave()));
    },
  };
}

class Player {
  readonly socket: Socket;
  readonly #failures: string[];
  #isLeaving = false;
  #moved = 0;

  constructor(where: { readonly host: string; readonly port: number }, failures: string[]) {
    this.#failures = failures;
    this.socket = connect({ ...where, noDelay: true });
    this.socket.resume();
    this.socket.on('error', (error) => this.#fail(`a player was thrown out: ${error.message}`));
    this.socket.on('close', () => {
      if (!this.#isLeaving) this.#fail('a player was thrown out');
    });
  }

  move(): void {
    if (this.socket.destroyed) return;
    this.socket.write(MOVE);
    this.#moved += MOVE.length;
    if (this.#moved - this.socket.bytesRead > MAX_UNANSWERED_MOVES * MOVE.length)
      this.#fail('a move was not answered in 2 s');
  }

  /** Half-closes, and takes what still comes: both sides then have counted the same. */
  async leave(): Promise<void> {
    this.#isLeaving = true;
    if (this.socket.destroyed) return;
    const end = untilClosed(this.socket);
    this.socket.end();
    await end;
  }

  #fail(what: string): void {
    if (!this.#failures.includes(what)) this.#failures.push(what);
  }
}
