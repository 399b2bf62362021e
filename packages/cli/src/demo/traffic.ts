import { connect, type Socket } from 'node:net';
import type { ServiceView } from '@weir/model';
import { PAGE_BYTES } from './backends.ts';

// What the clients of a demo tenant did, by their own count.
export interface TrafficCount {
  /** Bytes that the clients sent, and got. */
  readonly sentBytes: number;
  readonly receivedBytes: number;
  readonly connections: number;
  /** What was tried and did not end as it should. */
  readonly failures: readonly string[];
}

export interface Traffic {
  count(): TrafficCount;
  /** No more; resolves once every connection is closed. */
  stop(): Promise<void>;
}

export interface TrafficTarget {
  /** The addresses that the Service was given. */
  readonly addresses: readonly string[];
  readonly port: number;
}

/** The addresses in turn, as DNS would give them. */
export function roundRobin(addresses: readonly string[]): () => string {
  let next = 0;
  return () => {
    const address = addresses[next % addresses.length] ?? '';
    next += 1;
    return address;
  };
}

/** Resolves at the end of a connection, however it ends. */
export function untilClosed(socket: Socket): Promise<void> {
  return new Promise((resolve) => {
    socket.once('close', () => resolve());
  });
}

const VISIT_INTERVAL_MS = 40;
const VISIT_TIMEOUT_MS = 5_000;
const REQUEST = 'GET / HTTP/1.1\r\nHost: shop.example\r\nConnection: close\r\n\r\n';

/** Customers: 25 a second, each fetches one page on a connection of its own and checks that it came whole. */
export function startShopTraffic({ addresses, port }: TrafficTarget): Traffic {
  const address = roundRobin(addresses);
  const open = new Set<Promise<void>>();
  const failures: string[] = [];
  let sentBytes = 0;
  let receivedBytes = 0;
  let connections = 0;

  const timer = setInterval(() => {
    const visit = fetchPage({ host: address(), port })
      .then((page) => {
        connections += 1;
        sentBytes += page.sentBytes;
        receivedBytes += page.receivedBytes;
      })
      .catch((error: Error) => void failures.push(error.message))
      .finally(() => open.delete(visit));
    open.add(visit);
  }, VISIT_INTERVAL_MS);

  return {
    count: () => ({ sentBytes, receivedBytes, connections, failures }),
    async stop() {
      clearInterval(timer);
      await Promise.all(open);
    },
  };
}

interface PageTransfer {
  readonly sentBytes: number;
  readonly receivedBytes: number;
}

function fetchPage(where: { readonly host: string; readonly port: number }): Promise<PageTransfer> {
  const { promise, resolve, reject } = Promise.withResolvers<PageTransfer>();
  const socket = connect({ ...where, noDelay: true });
  const chunks: Buffer[] = [];
  socket.setTimeout(VISIT_TIMEOUT_MS, () => socket.destroy(new Error('no answer in time')));
  socket.on('data', (chunk: Buffer) => chunks.push(chunk));
  socket.on('error', reject);
  socket.on('close', () => {
    const answer = Buffer.concat(chunks);
    const isWhole = answer.subarray(0, 12).toString() === 'HTTP/1.1 200' && bodyBytes(answer) === PAGE_BYTES;
    if (isWhole) resolve({ sentBytes: socket.bytesWritten, receivedBytes: socket.bytesRead });
    else reject(new Error(`the shop answered ${answer.length} bytes, which is not its page`));
  });
  socket.write(REQUEST);
  return promise;
}

function bodyBytes(answer: Buffer): number {
  const head = answer.indexOf('\r\n\r\n');
  return head === -1 ? 0 : answer.length - head - 4;
}

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

const PARALLEL_UPLOADS = 4;
/** 4 × 16 KiB every 10 ms: some 50 Mbit/s, far more than the other tenants together, and no strain on the machine. */
const CHUNK = Buffer.alloc(16_384, 'more ');
const CHUNK_INTERVAL_MS = 10;
const UPLOAD_RETRY_DELAY_MS = 100;

export interface UploadTraffic extends Traffic {
  /** Connections open now. */
  openConnections(): number;
  /** Resolves when all that are open now have ended, whoever ended them. */
  allClosed(): Promise<void>;
  /** Attempts that were refused so far. */
  refusedConnections(): number;
}

/** Somebody who uploads in a loop and, thrown out, comes back at once. Being cut off is no failure of the demo here. */
export function startUploadTraffic({ addresses, port }: TrafficTarget): UploadTraffic {
  const address = roundRobin(addresses);
  const open = new Set<Socket>();
  const retries = new Set<NodeJS.Timeout>();
  let isStopping = false;
  let sentBefore = 0;
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
      sentBefore += socket.bytesWritten;
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
      sentBytes: [...open].reduce((sum, socket) => sum + socket.bytesWritten, sentBefore),
      receivedBytes: 0,
      connections,
      failures: [],
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
      const ends = [...open].map(untilClosed);
      for (const socket of open) socket.end();
      await Promise.all(ends);
    },
  };
}

/** The clients of all tenants. */
export interface DemoClients {
  readonly shop: Traffic;
  readonly game: Traffic;
  readonly uploader: UploadTraffic;
  stop(): Promise<void>;
}

/** They go to the addresses that the Services were given, as DNS would send them. */
export function startDemoClients(services: readonly ServiceView[]): DemoClients {
  const targetOf = (namespace: string, port: number) => {
    const service = services.find((each) => each.namespace === namespace && each.addresses.length > 0);
    return { addresses: service?.addresses ?? [], port };
  };
  const shop = startShopTraffic(targetOf('shop', 18_080));
  const game = startGameTraffic(targetOf('game', 17_777));
  const uploader = startUploadTraffic(targetOf('uploader', 19_000));
  return {
    shop,
    game,
    uploader,
    async stop() {
      await Promise.all([shop.stop(), game.stop(), uploader.stop()]);
    },
  };
}
