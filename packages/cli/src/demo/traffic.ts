import { connect, type Socket } from 'node:net';

// The clients of the demo's tenants. They count their own traffic, so that the demo can check Weir's accounting.

export interface TrafficCount {
  readonly sentBytes: number;
  readonly receivedBytes: number;
  readonly connections: number;
  /** HTTP requests that were answered, and the answers with a status of 500 or above among them. 0 without HTTP. */
  readonly requests: number;
  readonly serverErrors: number;
  readonly failures: FailureCount;
}

/** The failures since the start, and the message of the last failure. */
export interface FailureCount {
  readonly count: number;
  readonly last: string;
}

export const NO_FAILURES: FailureCount = { count: 0, last: '' };
const NO_REQUESTS = { requests: 0, serverErrors: 0 };

export interface Traffic {
  count(): TrafficCount;
  /** Ends the traffic. Resolves once every connection is closed. */
  stop(): Promise<void>;
}

export interface TrafficTarget {
  /** The addresses of the Service to which the clients connect. */
  readonly addresses: readonly string[];
  readonly port: number;
}

/** Returns a function that returns the addresses in turn, as DNS would. */
export function roundRobin(addresses: readonly string[]): () => string {
  let next = 0;
  return () => {
    const address = addresses[next % addresses.length] ?? '';
    next += 1;
    return address;
  };
}

/** Resolves when the connection is closed or reset. */
function untilClosed(socket: Socket): Promise<void> {
  return new Promise((resolve) => {
    socket.once('close', () => resolve());
  });
}

const PLAYERS = 6;
const MOVE_INTERVAL_MS = 50;
const MOVE = Buffer.alloc(200, 'left, left, jump. ');
/** Maximum number of a player's moves that wait for an echo: the moves of 2 s. If more moves wait, the demo fails. */
const MAX_UNANSWERED_MOVES = 40;

/** How long a player waits before the player connects again. */
const RECONNECT_DELAY_MS = 200;

/**
 * Starts players who stay connected during the whole demo and move 20 times a second. The server echoes every move. A player whose
 * connection ends connects again, so that the game continues after an operator has suspended and resumed it.
 */
export function startGameTraffic({ addresses, port }: TrafficTarget): Traffic {
  const address = roundRobin(addresses);
  let failures = NO_FAILURES;
  const onFailure = (last: string): void => {
    failures = { count: failures.count + 1, last };
  };
  const players = Array.from({ length: PLAYERS }, () => new Player(() => ({ host: address(), port }), onFailure));
  const timer = setInterval(() => {
    for (const player of players) player.move();
  }, MOVE_INTERVAL_MS);
  const sum = (countOf: (player: Player) => number): number =>
    players.reduce((total, player) => total + countOf(player), 0);
  return {
    count: () => ({
      sentBytes: sum(({ sentBytes }) => sentBytes),
      receivedBytes: sum(({ receivedBytes }) => receivedBytes),
      connections: sum(({ connections }) => connections),
      ...NO_REQUESTS,
      failures,
    }),
    async stop() {
      clearInterval(timer);
      await Promise.all(players.map((player) => player.leave()));
    },
  };
}

class Player {
  readonly #address: () => { readonly host: string; readonly port: number };
  readonly #onFailure: (failure: string) => void;
  #socket: Socket;
  #isLeaving = false;
  #retry: NodeJS.Timeout | undefined;
  #connections = 0;
  /** Bytes of earlier connections. */
  #closedSentBytes = 0;
  #closedReceivedBytes = 0;
  /** Bytes of the moves on the present connection. */
  #movedBytes = 0;

  constructor(address: () => { readonly host: string; readonly port: number }, onFailure: (failure: string) => void) {
    this.#address = address;
    this.#onFailure = onFailure;
    this.#socket = this.#connect();
  }

  get sentBytes(): number {
    return this.#closedSentBytes + this.#socket.bytesWritten;
  }

  get receivedBytes(): number {
    return this.#closedReceivedBytes + this.#socket.bytesRead;
  }

  get connections(): number {
    return this.#connections;
  }

  move(): void {
    if (this.#socket.destroyed || this.#socket.connecting) return;
    this.#socket.write(MOVE);
    this.#movedBytes += MOVE.length;
    if (this.#movedBytes - this.#socket.bytesRead > MAX_UNANSWERED_MOVES * MOVE.length)
      this.#onFailure('the game did not echo a move within 2 s');
  }

  /** Half-closes the connection and reads the remaining echoes, so that client and proxy count the same bytes. */
  async leave(): Promise<void> {
    this.#isLeaving = true;
    clearTimeout(this.#retry);
    if (this.#socket.destroyed) return;
    const closed = untilClosed(this.#socket);
    this.#socket.end();
    await closed;
  }

  #connect(): Socket {
    const socket = connect({ ...this.#address(), noDelay: true });
    this.#movedBytes = 0;
    socket.resume();
    socket.on('connect', () => {
      this.#connections += 1;
    });
    socket.on('error', (error) => this.#onFailure(`the connection of a player failed: ${error.message}`));
    socket.on('close', (hadError) => {
      if (this.#isLeaving) return;
      if (!hadError) this.#onFailure('the connection of a player was closed');
      this.#retry = setTimeout(() => this.#reconnect(), RECONNECT_DELAY_MS);
    });
    return socket;
  }

  #reconnect(): void {
    this.#closedSentBytes += this.#socket.bytesWritten;
    this.#closedReceivedBytes += this.#socket.bytesRead;
    this.#socket = this.#connect();
  }
}

const PARALLEL_UPLOADS = 4;
/**
 * Data of one write. Four connections that each write this data every 10 ms send about 50 Mbit/s: far more than the other tenants use, but
 * little load for a machine.
 */
const CHUNK = Buffer.alloc(16_384, 'more ');
const CHUNK_INTERVAL_MS = 10;
const UPLOAD_RETRY_DELAY_MS = 100;

export interface UploadTraffic extends Traffic {
  openConnections(): number;
  /** Resolves when every connection that was open at the call has been closed or reset. */
  allClosed(): Promise<void>;
  /** Number of connection attempts that were refused so far. */
  refusedConnections(): number;
}

/**
 * Starts a client that uploads on four connections, and reconnects 100 ms after a connection was closed or refused. Resets are expected, so
 * they do not count as failures.
 */
export function startUploadTraffic({ addresses, port }: TrafficTarget): UploadTraffic {
  const address = roundRobin(addresses);
  const open = new Set<Socket>();
  const retries = new Set<NodeJS.Timeout>();
  let isStopping = false;
  let closedSentBytes = 0;
  let connections = 0;
  let refused = 0;

  const upload = (): void => {
    const socket = connect({ host: address(), port, noDelay: true });
    socket.on('connect', () => {
      open.add(socket);
      connections += 1;
    });
    socket.on('error', () => {
      if (!open.has(socket)) refused += 1;
    });
    socket.on('close', () => {
      closedSentBytes += socket.bytesWritten;
      open.delete(socket);
      if (isStopping) return;
      const retry = setTimeout(() => {
        retries.delete(retry);
        upload();
      }, UPLOAD_RETRY_DELAY_MS);
      retries.add(retry);
    });
    socket.resume();
  };
  for (let index = 0; index < PARALLEL_UPLOADS; index += 1) upload();
  const timer = setInterval(() => {
    for (const socket of open) if (!socket.writableNeedDrain && socket.writable) socket.write(CHUNK);
  }, CHUNK_INTERVAL_MS);

  return {
    count: () => ({
      sentBytes: [...open].reduce((sum, socket) => sum + socket.bytesWritten, closedSentBytes),
      receivedBytes: 0,
      connections,
      ...NO_REQUESTS,
      failures: NO_FAILURES,
    }),
    openConnections: () => open.size,
    refusedConnections: () => refused,
    async allClosed() {
      await Promise.all([...open].map(untilClosed));
    },
    async stop() {
      isStopping = true;
      clearInterval(timer);
      for (const retry of retries) clearTimeout(retry);
      const closed = [...open].map(untilClosed);
      for (const socket of open) socket.end();
      await Promise.all(closed);
    },
  };
}
