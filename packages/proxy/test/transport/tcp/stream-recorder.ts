import type { StreamEvents, TcpStream } from '../../../src/transport/tcp-transport.ts';

/** Records the events of a stream, and lets a test wait for them. */
export class StreamRecorder implements StreamEvents {
  readonly chunks: Buffer[] = [];
  isConnected = false;
  hasEnded = false;
  drains = 0;
  received = 0;
  closed: { readonly code: string | undefined } | undefined;
  thrown: unknown;
  /** Handles received bytes, by default by recording them in `chunks`. A test may replace this function. */
  onBytes: (stream: TcpStream, bytes: Uint8Array) => void = (_stream, bytes) => {
    this.chunks.push(Buffer.from(bytes));
  };
  onDrained: (stream: TcpStream) => void = () => undefined;
  readonly #waiting = new Set<() => void>();

  get text(): string {
    return Buffer.concat(this.chunks).toString('latin1');
  }

  onConnect(stream: TcpStream): void {
    this.isConnected = true;
    stream.readStart();
    this.#wake();
  }

  onData(stream: TcpStream, bytes: Uint8Array): void {
    this.received += bytes.length;
    this.onBytes(stream, bytes);
    this.#wake();
  }

  onEnd(): void {
    this.hasEnded = true;
    this.#wake();
  }

  onDrain(stream: TcpStream): void {
    this.drains += 1;
    this.onDrained(stream);
    this.#wake();
  }

  onClose(_stream: TcpStream, code: string | undefined): void {
    if (this.closed !== undefined) throw new Error('closed twice');
    this.closed = { code };
    this.#wake();
  }

  onThrow(stream: TcpStream, thrown: unknown): void {
    this.thrown = thrown;
    stream.reset();
    this.#wake();
  }

  until(condition: () => boolean): Promise<void> {
    return new Promise((resolve) => {
      const check = (): void => {
        if (!condition()) return;
        this.#waiting.delete(check);
        resolve();
      };
      this.#waiting.add(check);
      check();
    });
  }

  #wake(): void {
    for (const check of [...this.#waiting]) check();
  }
}
