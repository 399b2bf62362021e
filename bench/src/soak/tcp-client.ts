// A TCP client that runs a script on one connection.
import { connect, type Socket } from 'node:net';
import { setTimeout } from 'node:timers/promises';
import type { ClientOutcome, ClientResult } from './client-totals.ts';
import type { Step } from './script.ts';

export type TcpClientOptions = {
  readonly port: number;
  readonly source: string;
  readonly script: readonly Step[];
  readonly isEcho: boolean;
  /** Number of the client. Clients with different numbers send different bytes. */
  readonly key: number;
  readonly onConnect: () => void;
  /** Aborts the client. */
  readonly signal: AbortSignal;
};

/** Longer than any script takes, even on a busy machine. */
const CLIENT_TIMEOUT_MS = 90_000;
const PATTERN_PERIOD_BYTES = 65_521;
/** The pattern that clients send, repeated once, so that one period from any offset is contiguous. The period is a prime number. */
const PATTERN = Buffer.from(
  Array.from(
    { length: 2 * PATTERN_PERIOD_BYTES },
    (_, at) => (Math.imul(at % PATTERN_PERIOD_BYTES, 2_654_435_761) >>> 13) & 0xff,
  ),
);

/** Runs a client to its end and returns the result; undefined if the client could not connect. */
export function runTcpClient(options: TcpClientOptions): Promise<ClientResult | undefined> {
  return new TcpClient(options).run();
}

class TcpClient {
  readonly #options: TcpClientOptions;
  readonly #socket: Socket;
  /** Sent bytes that the endpoint has not echoed yet. */
  readonly #expectedEcho: Buffer[] = [];
  readonly #closed = new AbortController();
  #changed = Promise.withResolvers<void>();
  #isConnected = false;
  #hasReceivedFin = false;
  #hasSentFin = false;
  #hasAborted = false;
  #failure: 'reset' | 'corrupted' | 'timed-out' | undefined;
  #offset = 0;
  #headerBytes = 0;
  #readBytes = 0;

  constructor(options: TcpClientOptions) {
    this.#options = options;
    this.#offset = Math.imul(options.key, 40_503) >>> 0;
    const { port, source: localAddress } = options;
    this.#socket = connect({ host: '127.0.0.1', port, localAddress, noDelay: true, allowHalfOpen: true });
  }

  async run(): Promise<ClientResult | undefined> {
    const { script, signal, onConnect } = this.#options;
    const socket = this.#socket;
    const leave = (): void => this.#abort();
    const watch = globalThis.setTimeout(() => {
      this.#failure ??= 'timed-out';
      socket.resetAndDestroy();
    }, CLIENT_TIMEOUT_MS);
    signal.addEventListener('abort', leave);
    socket.on('connect', () => {
      this.#isConnected = true;
      onConnect();
      this.#wake();
    });
    socket.on('data', (bytes: Buffer) => this.#receive(bytes));
    socket.on('end', () => {
      this.#hasReceivedFin = true;
      this.#wake();
    });
    socket.on('error', ({ code }: NodeJS.ErrnoException) => {
      this.#failure ??= 'reset';
      // the connection was established, but reset before Node emitted "connect"
      if (!this.#isConnected && code === 'ECONNRESET') {
        this.#isConnected = true;
        onConnect();
      }
    });
    socket.on('close', () => {
      this.#closed.abort();
      this.#wake();
    });
    if (await this.#waitUntil(() => this.#isConnected)) {
      for (const step of script) {
        if (this.#isClosed) break;
        await this.#runStep(step);
      }
    }
    if (!this.#isClosed) this.#close();
    await this.#waitUntil(() => false);
    signal.removeEventListener('abort', leave);
    clearTimeout(watch);
    if (!this.#isConnected) return undefined;
    return { outcome: this.#outcome(), sent: socket.bytesWritten - this.#headerBytes, read: this.#readBytes };
  }

  get #isClosed(): boolean {
    return this.#closed.signal.aborted;
  }

  #outcome(): ClientOutcome {
    if (this.#failure === 'corrupted' || this.#failure === 'timed-out') return this.#failure;
    if (this.#hasAborted) return 'aborted';
    if (this.#failure !== undefined) return this.#failure;
    const isWhole = !this.#options.isEcho || this.#expectedEcho.length === 0;
    return this.#hasReceivedFin && this.#hasSentFin && isWhole ? 'clean' : 'closed-early';
  }

  async #runStep(step: Step): Promise<void> {
    const socket = this.#socket;
    switch (step.kind) {
      case 'write':
        if (step.consumedByProxy) this.#headerBytes += step.bytes.length;
        if (step.consumedByProxy === true) this.#socket.write(step.bytes);
        else this.#write(step.bytes);
        return;
      case 'send':
        await this.#send(step);
        return;
      case 'await-echo':
        await this.#waitUntil(() => this.#expectedEcho.length === 0 || this.#hasReceivedFin);
        return;
      case 'read': {
        const wanted = this.#readBytes + step.bytes;
        await this.#waitUntil(() => this.#readBytes >= wanted || this.#hasReceivedFin);
        return;
      }
      case 'sleep':
        await this.#sleep(step.ms);
        return;
      case 'pause':
        socket.pause();
        return;
      case 'resume':
        socket.resume();
        return;
      case 'send-fin':
        this.#hasSentFin = true;
        socket.end(() => this.#wake());
        // waits, because Node emits no "close" event if a socket is reset while its FIN is pending
        await this.#waitUntil(() => socket.writableFinished);
        return;
      case 'await-fin':
        socket.resume();
        await this.#waitUntil(() => this.#hasReceivedFin);
        return;
      case 'reset':
        this.#abort();
        return;
      case 'close':
        this.#hasAborted = true;
        socket.destroy();
    }
  }

  async #send({ bytes, chunk, gapMs }: Extract<Step, { kind: 'send' }>): Promise<void> {
    for (let left = bytes; left > 0 && !this.#isClosed; ) {
      const from = this.#offset % PATTERN_PERIOD_BYTES;
      const length = Math.min(chunk, left, PATTERN_PERIOD_BYTES);
      left -= length;
      this.#offset += length;
      this.#write(PATTERN.subarray(from, from + length));
      if (gapMs > 0) await this.#sleep(gapMs);
    }
  }

  #write(bytes: Buffer): void {
    if (this.#options.isEcho) this.#expectedEcho.push(bytes);
    this.#socket.write(bytes);
  }

  #receive(bytes: Buffer): void {
    this.#readBytes += bytes.length;
    if (this.#options.isEcho) this.#compare(bytes);
    this.#wake();
  }

  /**
   * Compares received bytes with sent bytes. Ignores a TLS alert, because the alert is no echo: the proxy sends it when it refuses the
   * ClientHello.
   */
  #compare(bytes: Buffer): void {
    for (let at = 0; at < bytes.length; ) {
      const due = this.#expectedEcho[0];
      if (due === undefined || isAlert(bytes, this.#readBytes)) break;
      const length = Math.min(due.length, bytes.length - at);
      if (due.compare(bytes, at, at + length, 0, length) !== 0) {
        this.#failure = 'corrupted';
        this.#socket.resetAndDestroy();
        return;
      }
      at += length;
      if (length === due.length) this.#expectedEcho.shift();
      else this.#expectedEcho[0] = due.subarray(length);
    }
  }

  async #sleep(ms: number): Promise<void> {
    await setTimeout(ms, undefined, { signal: this.#closed.signal }).catch(() => {});
  }

  /** Closes a connection that the script left open. */
  #close(): void {
    if (this.#hasSentFin && this.#hasReceivedFin) return;
    if (!this.#hasSentFin) this.#socket.end();
    this.#socket.resume();
  }

  #abort(): void {
    this.#hasAborted = true;
    this.#socket.resetAndDestroy();
  }

  #wake(): void {
    this.#changed.resolve();
    this.#changed = Promise.withResolvers<void>();
  }

  async #waitUntil(holds: () => boolean): Promise<boolean> {
    while (!holds() && !this.#isClosed) await this.#changed.promise;
    return holds();
  }
}

/** Reports whether all received bytes are a TLS alert (RFC 8446, 6): content type 21, version, length 2, level and description. */
function isAlert(bytes: Buffer, total: number): boolean {
  return bytes.length === 7 && total === 7 && bytes[0] === 21 && bytes[1] === 3 && bytes[4] === 2;
}
