// Plays a script on one connection.
import { connect, type Socket } from 'node:net';
import { setTimeout } from 'node:timers/promises';
import type { Step } from './script.ts';
import type { End, Played } from './tally.ts';

export type ClientOptions = {
  readonly port: number;
  readonly source: string;
  readonly script: readonly Step[];
  /** Whether all that is sent comes back. */
  readonly isEcho: boolean;
  /** Which bytes are this client's own. */
  readonly key: number;
  readonly onConnect: () => void;
  /** The load is over: it goes. */
  readonly signal: AbortSignal;
};

/** More than any script needs, on a busy machine too. */
const stuckMs = 90_000;
const period = 65_521;
/** Bytes that repeat after a prime, twice, so that any stretch of a period lies in one piece. */
const table = Buffer.from(
  Array.from({ length: 2 * period }, (_, at) => (Math.imul(at % period, 2_654_435_761) >>> 13) & 0xff),
);

/** Undefined: it could not connect. */
export function play(options: ClientOptions): Promise<Played | undefined> {
  return new Client(options).play();
}

class Client {
  readonly #options: ClientOptions;
  readonly #socket: Socket;
  /** Sent and not yet come back. */
  readonly #due: Buffer[] = [];
  readonly #over = new AbortController();
  #changed = Promise.withResolvers<void>();
  #isConnected = false;
  #hasEnded = false;
  #hasFinished = false;
  #hasLeft = false;
  #failed: 'reset' | 'foreign' | 'stuck' | undefined;
  #offset = 0;
  #uncounted = 0;
  #read = 0;

  constructor(options: ClientOptions) {
    this.#options = options;
    this.#offset = Math.imul(options.key, 40_503) >>> 0;
    const { port, source: localAddress } = options;
    this.#socket = connect({ host: '127.0.0.1', port, localAddress, noDelay: true, allowHalfOpen: true });
  }

  async play(): Promise<Played | undefined> {
    const { script, signal, onConnect } = this.#options;
    const socket = this.#socket;
    const leave = (): void => this.#leave();
    const watch = globalThis.setTimeout(() => {
      this.#failed ??= 'stuck';
      socket.resetAndDestroy();
    }, stuckMs);
    signal.addEventListener('abort', leave);
    socket.on('connect', () => {
      this.#isConnected = true;
      onConnect();
      this.#wake();
    });
    socket.on('data', (bytes: Buffer) => this.#take(bytes));
    socket.on('end', () => {
      this.#hasEnded = true;
      this.#wake();
    });
    socket.on('error', ({ code }: NodeJS.ErrnoException) => {
      this.#failed ??= 'reset';
      // Reset so early that Node has not said yet that it was connected.
      if (!this.#isConnected && code === 'ECONNRESET') {
        this.#isConnected = true;
        onConnect();
      }
    });
    socket.on('close', () => {
      this.#over.abort();
      this.#wake();
    });
    if (await this.#until(() => this.#isConnected)) {
      for (const step of script) {
        if (this.#isOver) break;
        await this.#do(step);
      }
    }
    if (!this.#isOver) this.#quit();
    await this.#until(() => false);
    signal.removeEventListener('abort', leave);
    clearTimeout(watch);
    if (!this.#isConnected) return undefined;
    return { end: this.#end(), sent: socket.bytesWritten - this.#uncounted, read: this.#read };
  }

  get #isOver(): boolean {
    return this.#over.signal.aborted;
  }

  #end(): End {
    if (this.#failed === 'foreign' || this.#failed === 'stuck') return this.#failed;
    if (this.#hasLeft) return 'left';
    if (this.#failed !== undefined) return this.#failed;
    const isWhole = !this.#options.isEcho || this.#due.length === 0;
    return this.#hasEnded && this.#hasFinished && isWhole ? 'clean' : 'cut';
  }

  async #do(step: Step): Promise<void> {
    const socket = this.#socket;
    switch (step.kind) {
      case 'say':
        if (step.uncounted) this.#uncounted += step.bytes.length;
        if (step.uncounted === true) this.#socket.write(step.bytes);
        else this.#write(step.bytes);
        return;
      case 'send':
        await this.#send(step);
        return;
      case 'echoed':
        await this.#until(() => this.#due.length === 0 || this.#hasEnded);
        return;
      case 'read': {
        const wanted = this.#read + step.bytes;
        await this.#until(() => this.#read >= wanted || this.#hasEnded);
        return;
      }
      case 'rest':
        await this.#rest(step.ms);
        return;
      case 'pause':
        socket.pause();
        return;
      case 'resume':
        socket.resume();
        return;
      case 'finish':
        this.#hasFinished = true;
        socket.end(() => this.#wake());
        // Node never says "close" of a socket that is reset while its FIN is under way.
        await this.#until(() => socket.writableFinished);
        return;
      case 'ended':
        socket.resume();
        await this.#until(() => this.#hasEnded);
        return;
      case 'reset':
        this.#leave();
        return;
      case 'close':
        this.#hasLeft = true;
        socket.destroy();
    }
  }

  async #send({ bytes, chunk, gapMs }: Extract<Step, { kind: 'send' }>): Promise<void> {
    for (let left = bytes; left > 0 && !this.#isOver; ) {
      const from = this.#offset % period;
      const length = Math.min(chunk, left, period);
      left -= length;
      this.#offset += length;
      this.#write(table.subarray(from, from + length));
      if (gapMs > 0) await this.#rest(gapMs);
    }
  }

  #write(bytes: Buffer): void {
    if (this.#options.isEcho) this.#due.push(bytes);
    this.#socket.write(bytes);
  }

  #take(bytes: Buffer): void {
    this.#read += bytes.length;
    if (this.#options.isEcho) this.#compare(bytes);
    this.#wake();
  }

  /** An alert of TLS is no echo: it comes instead of one. */
  #compare(bytes: Buffer): void {
    for (let at = 0; at < bytes.length; ) {
      const due = this.#due[0];
      if (due === undefined || isAlert(bytes, this.#read)) break;
      const length = Math.min(due.length, bytes.length - at);
      if (due.compare(bytes, at, at + length, 0, length) !== 0) {
        this.#failed = 'foreign';
        this.#socket.resetAndDestroy();
        return;
      }
      at += length;
      if (length === due.length) this.#due.shift();
      else this.#due[0] = due.subarray(length);
    }
  }

  async #rest(ms: number): Promise<void> {
    await setTimeout(ms, undefined, { signal: this.#over.signal }).catch(() => {});
  }

  /** What a script leaves open. */
  #quit(): void {
    if (this.#hasFinished && this.#hasEnded) return;
    if (!this.#hasFinished) this.#socket.end();
    this.#socket.resume();
  }

  #leave(): void {
    this.#hasLeft = true;
    this.#socket.resetAndDestroy();
  }

  #wake(): void {
    this.#changed.resolve();
    this.#changed = Promise.withResolvers<void>();
  }

  async #until(holds: () => boolean): Promise<boolean> {
    while (!holds() && !this.#isOver) await this.#changed.promise;
    return holds();
  }
}

/** RFC 8446, 6: content type 21, version, length 2, level and description. */
function isAlert(bytes: Buffer, total: number): boolean {
  return bytes.length === 7 && total === 7 && bytes[0] === 21 && bytes[1] === 3 && bytes[4] === 2;
}
