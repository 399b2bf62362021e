import { once } from 'node:events';
import { connect, type Socket } from 'node:net';
import { type ConnectionOptions, connect as connectTls } from 'node:tls';
import { firstMismatch, patternBytes } from './pattern.ts';

export type TestClientOptions = {
  readonly host?: string;
  readonly port: number;
  /** The local address to connect from. */
  readonly localAddress?: string;
  readonly timeoutMs?: number;
  /** TLS options. If given, the client uses TLS, and all counts and buffers are of plaintext. */
  readonly tls?: ConnectionOptions;
  /**
   * The seed of the pattern that received bytes must match. If given, the bytes are compared but not stored, so that a
   * large transfer does not fill the memory.
   */
  readonly expectPattern?: number;
};

/**
 * How the connection ended: by the peer's FIN, by an error such as ECONNRESET, or by a byte that does not match the expected
 * pattern.
 */
export type ConnectionEnd =
  | { readonly kind: 'end' }
  | { readonly kind: 'error'; readonly code: string }
  | { readonly kind: 'mismatch'; readonly message: string };

export type TestClient = AsyncDisposable & {
  readonly localPort: number;
  readonly localAddress: string;
  /** The number of bytes sent so far. */
  readonly sent: number;
  readonly received: number;
  /** The bytes that arrived and that `take` has not removed yet. */
  readonly buffered: Buffer;
  /** Resolves when the kernel has accepted all bytes. */
  send(data: string | Uint8Array): Promise<void>;
  sendPattern(what: { bytes: number; seed?: number; chunk?: number }): Promise<void>;
  /** Half-closes the connection with a FIN. */
  end(): Promise<void>;
  /** Closes the connection with a RST. */
  reset(): void;
  /** Sends a FIN without a TLS close_notify, as an attacker in the network could. */
  sendBareFin(): void;
  pause(): void;
  resume(): void;
  /**
   * Waits for a number of bytes, or until the buffered text matches `what`. Removes the bytes up to the end of the
   * match from the buffer, and returns them.
   */
  take(what: number | RegExp): Promise<Buffer>;
  /** Waits until at least this many bytes were received in total. */
  waitForBytes(bytes: number): Promise<void>;
  /** Resolves with the reason when the connection has ended. */
  readonly ended: Promise<ConnectionEnd>;
  close(): Promise<void>;
};

/** Connects a TCP client that counts every byte, and sends a FIN or RST on demand. Rejects if the connection fails. */
export async function connectClient(options: TestClientOptions): Promise<TestClient> {
  const { host = '127.0.0.1', port, localAddress, timeoutMs = 10_000, expectPattern, tls } = options;
  const raw = connect({ host, port, allowHalfOpen: true, noDelay: true, ...(localAddress ? { localAddress } : {}) });
  const connectTimer = setTimeout(
    () => raw.destroy(new Error(`no connection to ${host}:${port} in ${timeoutMs} ms`)),
    timeoutMs,
  );
  try {
    await once(raw, 'connect');
  } finally {
    clearTimeout(connectTimer);
  }
  const socket = tls === undefined ? raw : await startTls(raw, tls);
  // Not `socket.closed`, because `TLSSocket.closed` can be false after the close event.
  const closed = new Promise<void>((resolve) => socket.once('close', () => resolve()));
  const reading = startReader(socket, { expectPattern, timeoutMs, name: `${host}:${port}` });
  const { localPort = 0, localAddress: from = '' } = raw;
  let sent = 0;

  const send = async (data: string | Uint8Array): Promise<void> => {
    const bytes = typeof data === 'string' ? Buffer.from(data) : data;
    await new Promise<void>((resolve, reject) => socket.write(bytes, (error) => (error ? reject(error) : resolve())));
    sent += bytes.length;
  };
  const close = async (): Promise<void> => {
    socket.destroy();
    await closed;
  };
  return {
    localPort,
    localAddress: from,
    get sent() {
      return sent;
    },
    get received() {
      return reading.received;
    },
    get buffered() {
      return reading.buffered;
    },
    send,
    async sendPattern({ bytes, seed = 0, chunk = 16_384 }) {
      for (let at = 0; at < bytes; at += chunk) {
        await send(patternBytes({ seed, offset: at, length: Math.min(chunk, bytes - at) }));
      }
    },
    end: () => new Promise<void>((resolve) => socket.end(resolve)),
    reset: () => void raw.resetAndDestroy(),
    sendBareFin: () => void raw.end(),
    pause: () => void socket.pause(),
    resume: () => void socket.resume(),
    take: reading.take,
    waitForBytes: (bytes) => reading.waitUntil(() => reading.received >= bytes, `${bytes} bytes`),
    ended: reading.ended,
    close,
    [Symbol.asyncDispose]: close,
  };
}

async function startTls(raw: Socket, tls: ConnectionOptions): Promise<Socket> {
  const socket = connectTls({ ...tls, socket: raw });
  await once(socket, 'secureConnect');
  return socket;
}

type ReaderOptions = { expectPattern: number | undefined; timeoutMs: number; name: string };

type Reader = {
  readonly received: number;
  readonly buffered: Buffer;
  readonly ended: Promise<ConnectionEnd>;
  take(what: number | RegExp): Promise<Buffer>;
  waitUntil(condition: () => boolean, what: string): Promise<void>;
};

function startReader(socket: Socket, { expectPattern, timeoutMs, name }: ReaderOptions): Reader {
  let chunks: Buffer[] = [];
  let received = 0;
  let ending: ConnectionEnd | undefined;
  const { promise: ended, resolve: resolveEnded } = Promise.withResolvers<ConnectionEnd>();
  const watchers = new Set<() => void>();

  socket.on('data', (chunk: Buffer) => {
    if (expectPattern === undefined) chunks.push(chunk);
    else {
      const mismatch = firstMismatch(chunk, { seed: expectPattern, offset: received });
      if (mismatch >= 0)
        finish({ kind: 'mismatch', message: `byte ${received + mismatch} does not match pattern ${expectPattern}` });
    }
    received += chunk.length;
    wake();
  });
  socket.on('end', () => finish({ kind: 'end' }));
  socket.on('error', (error: NodeJS.ErrnoException) => finish({ kind: 'error', code: error.code ?? error.message }));
  socket.on('close', () => finish({ kind: 'error', code: 'CLOSED_HERE' }));

  function finish(end: ConnectionEnd): void {
    ending ??= end;
    resolveEnded(ending);
    wake();
  }
  function wake(): void {
    for (const watcher of watchers) watcher();
  }
  function joined(): Buffer {
    if (chunks.length > 1) chunks = [Buffer.concat(chunks)];
    return chunks[0] ?? Buffer.alloc(0);
  }

  async function until(condition: () => boolean, what: string): Promise<void> {
    const { promise, resolve, reject } = Promise.withResolvers<void>();
    const progress = (): string => `${name} sent ${received} bytes`;
    const check = (): void => {
      if (condition()) resolve();
      else if (ending)
        reject(new Error(`${progress()} and the connection ended (${JSON.stringify(ending)}) before ${what}`));
    };
    const timer = setTimeout(() => reject(new Error(`${progress()} in ${timeoutMs} ms, expected ${what}`)), timeoutMs);
    watchers.add(check);
    check();
    try {
      await promise;
    } finally {
      clearTimeout(timer);
      watchers.delete(check);
    }
  }

  async function take(what: number | RegExp): Promise<Buffer> {
    const length = (): number => {
      if (typeof what === 'number') return joined().length >= what ? what : -1;
      const match = what.exec(joined().toString('latin1'));
      return match ? match.index + match[0].length : -1;
    };
    await until(() => length() >= 0, String(what));
    const all = joined();
    const size = length();
    chunks = [all.subarray(size)];
    return all.subarray(0, size);
  }

  return {
    get received() {
      return received;
    },
    get buffered() {
      return joined();
    },
    ended,
    take,
    waitUntil: until,
  };
}
