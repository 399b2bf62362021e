import type { ResponseSource } from '../http/request-carrier.ts';
import type { Limiter } from '../limits/limiter.ts';
import { MAX_ASSUMED_BYTES, MAX_UNMEASURED_BYTES, type TenantBuffers } from '../limits/tenant-buffers.ts';
import { addToCounter, SENT, UNACKNOWLEDGED } from '../metering/counters.ts';
import type { SessionRecord } from '../metering/session-record.ts';
import type { TcpStream, Window } from '../transport/tcp-transport.ts';
import type { RelayContext, SendingSession } from './session.ts';

export interface CountedConnectionOptions {
  readonly context: RelayContext;
  readonly counters: Float64Array;
  /** The row that counts sent bytes; `counters` by default. HTTP/2 passes another row, and counts bytes by request. */
  readonly byteCounters?: Float64Array;
  /** The limiter of the tenant that owns the Service. */
  readonly tenant: Limiter;
}

/**
 * A client connection whose sent and buffered bytes are counted. A base class and not a field of each session, because
 * a field would cost one more object per connection.
 */
export abstract class CountedConnection implements SendingSession {
  sendingIndex = -1;
  protected readonly context: RelayContext;
  protected readonly client: TcpStream;
  /** The counters of this connection's Service. They stay the same even if the Service gets other counters later. */
  counters: Float64Array;
  /** Undefined if this connection is neither logged nor counted for its client. */
  protected record: SessionRecord | undefined;
  #byteCounters: Float64Array;
  /** The number of bytes that were written to the client's stream and are not counted as sent yet. */
  #uncountedBytes = 0;
  /** The part of `#uncountedBytes` that the kernel has taken, as last added to the counters. */
  #bytesInKernel = 0;
  #buffers: TenantBuffers;
  /** How many bytes of this connection `#buffers` includes. */
  #bufferedBytes = 0;
  #window: Window = 'full';

  constructor(client: TcpStream, { context, counters, byteCounters, tenant }: CountedConnectionOptions) {
    this.client = client;
    this.context = context;
    this.counters = counters;
    this.#byteCounters = byteCounters ?? counters;
    this.#buffers = context.buffers.of(tenant);
  }

  /** The stream to the endpoint, if there is one. */
  protected abstract get endpointStream(): ResponseSource | undefined;
  protected abstract get isEnded(): boolean;
  /** Called when the client has acknowledged bytes, because the connection is not idle then. */
  protected abstract extendIdleDeadline(): void;

  countSent(): boolean {
    // The stream may also wait for bytes of a former session, which the client acknowledges first.
    const unacknowledged = Math.min(this.client.unacknowledgedBytes(), this.#uncountedBytes);
    if (unacknowledged !== this.#uncountedBytes) {
      const sent = this.#uncountedBytes - unacknowledged;
      addToCounter(this.#byteCounters, SENT, sent);
      this.record?.addSent(sent);
      this.#uncountedBytes = unacknowledged;
      this.extendIdleDeadline();
    }
    this.#countInKernel(this.isEnded ? 0 : Math.max(0, unacknowledged - this.client.queuedBytes));
    if (this.#bufferedBytes > MAX_UNMEASURED_BYTES) this.#measureBuffers();
    return unacknowledged > 0 || this.#bufferedBytes > MAX_UNMEASURED_BYTES;
  }

  /** Writes to the client, and counts the bytes as sent when the client has acknowledged them. */
  protected writeToClient(bytes: Uint8Array): void {
    this.#uncountedBytes += bytes.length;
    this.addBufferedBytes(bytes.length);
    const queued = this.client.write(bytes);
    this.#countInKernel(Math.max(0, this.#uncountedBytes - queued));
  }

  /**
   * Counts relayed bytes as buffered until the next measurement. Measures soon if the tenant is above its share, because
   * the peers may have read the bytes.
   */
  protected addBufferedBytes(bytes: number): void {
    this.context.sending.add(this);
    if (this.#bufferedBytes < MAX_ASSUMED_BYTES)
      this.#setBufferedBytes(Math.min(this.#bufferedBytes + bytes, MAX_ASSUMED_BYTES));
    else if (this.#buffers.window !== 'full') this.#measureBuffers();
    if (this.#window !== this.#buffers.window) this.#adaptWindow();
  }

  /** Stops reading `source`, because its bytes fill the buffers. */
  protected pause(source: Pick<TcpStream, 'readStop'> | undefined): void {
    source?.readStop();
    if (this.#window === 'full') this.#measureBuffers();
  }

  /** Returns the window for a new stream to an endpoint. Adapts the client's window if the tenant's has changed. */
  currentWindow(): Window {
    if (this.#window !== this.#buffers.window) this.#adaptWindow();
    return this.#window;
  }

  /** Must be called when the connection ends. */
  protected endCounting(): void {
    this.context.sending.delete(this);
    this.#setBufferedBytes(0);
    if (this.#uncountedBytes > 0) this.countSent();
  }

  /** Counts all written bytes as sent. To be called before another session gets the client's stream. */
  protected countAllAsSent(): void {
    addToCounter(this.#byteCounters, SENT, this.#uncountedBytes);
    this.record?.addSent(this.#uncountedBytes);
    this.#uncountedBytes = 0;
    this.#countInKernel(0);
  }

  /** Counts all written bytes as sent, and further bytes for another Service. `tenant`: see `CountedConnectionOptions`. */
  protected countFor(counters: Float64Array, tenant: Limiter): void {
    this.countAllAsSent();
    this.counters = counters;
    this.#byteCounters = counters;
    const buffered = this.#bufferedBytes;
    this.#setBufferedBytes(0);
    this.#buffers = this.context.buffers.of(tenant);
    this.#setBufferedBytes(buffered);
  }

  #countInKernel(bytes: number): void {
    addToCounter(this.#byteCounters, UNACKNOWLEDGED, bytes - this.#bytesInKernel);
    this.#bytesInKernel = bytes;
  }

  #measureBuffers(): void {
    const client = this.client.bufferedBytes?.() ?? 0;
    this.#setBufferedBytes(client + (this.endpointStream?.bufferedBytes?.() ?? 0));
    if (this.#window !== this.#buffers.window) this.#adaptWindow();
  }

  #setBufferedBytes(bytes: number): void {
    if (bytes === this.#bufferedBytes) return;
    this.#buffers.add(bytes - this.#bufferedBytes);
    this.#bufferedBytes = bytes;
  }

  #adaptWindow(): void {
    this.#window = this.#buffers.window;
    this.client.setWindow?.(this.#window);
    this.endpointStream?.setWindow?.(this.#window);
  }
}
