// Serves the methods of `HttpAttack` over IPC: keeps connections open, and sends the next part of an attack on one connection after the other.
import { once } from 'node:events';
import { type AddressInfo, connect, createServer, type Socket } from 'node:net';
import { serveRpc } from '../processes/rpc.ts';

/** What each connection sends. The bytes are Latin-1. */
export type AttackBytes = {
  /** Sent when the connection opens. Empty for none. */
  readonly first: string;
  /** Whether the connection counts as open when the proxy has answered `first`. */
  readonly awaitsAnswer: boolean;
  /** Sent again and again by `run`. If empty, and if no answer is awaited, the client reads one byte instead, and no other byte. */
  readonly next: string;
  /** How often one write contains `next`. */
  readonly copies: number;
  /** Where `next` contains the identifier of a new HTTP/2 stream (RFC 9113 §4.1). The streams are numbered from the odd number `stream`. */
  readonly streamIdsAt: readonly number[];
  readonly stream: number;
};

export type HttpAttackReport = {
  /** How often `next` was sent. */
  readonly sent: number;
  /** How many connections the proxy has closed. */
  readonly ended: number;
};

export type HttpAttack = {
  /** Opens an endpoint that answers GET with `SLOW_RESPONSE_BYTES`, and that reads the bodies of other requests without an answer. */
  openEndpoint(): Promise<number>;
  /** Opens connections. Resolves when all are open or refused. */
  open(port: number, connections: number, bytes: AttackBytes): Promise<void>;
  /** Sends `next` at a fixed rate. Replaces connections that the proxy closes. */
  run(perSecond: number, seconds: number): Promise<HttpAttackReport>;
  /** Returns how many connections are open. */
  count(): number;
  close(): void;
};

/** Less than the accept queue of the proxy's listener, so that no connection attempt is refused. */
const MAX_PENDING_CONNECTIONS = 32;
/** Each address has its own range of ephemeral ports. */
const SOURCE_ADDRESSES = 4;
const TICK_MS = 5;
const STREAM_ID_STEP = 2;
const SLOW_RESPONSE_BYTES = 2 ** 20;

/** Reads one byte with one system call, and pauses. */
const ONE_BYTE = { buffer: Buffer.alloc(1), callback: (): boolean => false };

class AttackConnection {
  readonly socket: Socket;
  readonly #bytes: AttackBytes;
  readonly #next: Buffer;
  #stream: number;

  constructor(port: number, bytes: AttackBytes, localAddress: string) {
    this.#bytes = bytes;
    this.#next = Buffer.from(bytes.next.repeat(bytes.copies), 'latin1');
    this.#stream = bytes.stream;
    const options = { host: '127.0.0.1', port, localAddress, noDelay: true };
    this.socket = connect(this.#readsSlowly ? { ...options, onread: ONE_BYTE } : options);
    if (this.#readsSlowly) this.socket.pause();
    this.socket.on('error', () => {});
    this.socket.on('connect', () => bytes.first !== '' && this.socket.write(bytes.first, 'latin1'));
  }

  get #readsSlowly(): boolean {
    return this.#bytes.next === '' && !this.#bytes.awaitsAnswer;
  }

  /** Resolves when the connection is open, or closed. */
  async opened(): Promise<void> {
    const events = [once(this.socket, this.#bytes.awaitsAnswer ? 'data' : 'connect'), once(this.socket, 'close')];
    await Promise.race(events).catch(() => {});
    for (const event of events) event.catch(() => {});
    // The answers are read, because the proxy would otherwise stop to read the attack.
    if (!this.#readsSlowly) this.socket.resume();
  }

  send(): void {
    if (this.#readsSlowly) {
      this.socket.resume();
      return;
    }
    const part = Buffer.from(this.#next);
    const { next, copies, streamIdsAt } = this.#bytes;
    for (let copy = 0; copy < copies && streamIdsAt.length > 0; copy++) {
      for (const at of streamIdsAt) part.writeUInt32BE(this.#stream, copy * next.length + at);
      this.#stream += STREAM_ID_STEP;
    }
    this.socket.write(part);
  }
}

const open: AttackConnection[] = [];
let openOne: () => Promise<void> = async () => {};
let opened = 0;
let ended = 0;
let isClosing = false;

const RESPONSE = Buffer.concat([
  Buffer.from(`HTTP/1.1 200 OK\r\nContent-Length: ${SLOW_RESPONSE_BYTES}\r\n\r\n`),
  Buffer.alloc(SLOW_RESPONSE_BYTES, 'x'),
]);

serveRpc<HttpAttack>({
  async openEndpoint() {
    const server = createServer((socket) => {
      socket.on('error', () => {});
      socket.on('data', (bytes) => {
        if (bytes.toString('latin1', 0, 4) === 'GET ') socket.write(RESPONSE);
      });
    });
    await once(server.listen({ host: '127.0.0.1', port: 0, backlog: 4_096 }), 'listening');
    return (server.address() as AddressInfo).port;
  },
  async open(port, connections, bytes) {
    isClosing = false;
    openOne = async () => {
      const connection = new AttackConnection(port, bytes, `127.0.0.${2 + (opened++ % SOURCE_ADDRESSES)}`);
      await connection.opened();
      if (connection.socket.destroyed) return;
      open.push(connection);
      connection.socket.once('close', () => onClose(connection));
    };
    let left = connections;
    const openSequentially = async (): Promise<void> => {
      while (left-- > 0) await openOne();
    };
    await Promise.all(Array.from({ length: MAX_PENDING_CONNECTIONS }, openSequentially));
  },
  async run(perSecond, seconds) {
    ended = 0;
    let sent = 0;
    const startedAt = performance.now();
    while (performance.now() - startedAt < seconds * 1_000) {
      const due = ((performance.now() - startedAt) * perSecond) / 1_000;
      for (; sent < due && open.length > 0; sent++) open[sent % open.length]?.send();
      await new Promise((resolve) => setTimeout(resolve, TICK_MS));
    }
    return { sent, ended };
  },
  count: () => open.length,
  close() {
    isClosing = true;
    for (const { socket } of open) socket.resetAndDestroy();
    open.length = 0;
  },
});

function onClose(connection: AttackConnection): void {
  const index = open.indexOf(connection);
  if (index >= 0) open.splice(index, 1);
  if (isClosing) return;
  ended++;
  void openOne();
}
