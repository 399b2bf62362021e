// The stream of a client whose TLS Weir terminates, on an `EpollStream` that carries the encrypted records. The stream below queues what
// the kernel does not take, paces reads, and closes; this stream only changes the bytes in between.
import { strict as assert } from 'node:assert';
import { eventLoop } from '../event-loop.ts';
import { NativeMemory } from '../syscalls/ffi.ts';
import { MAX_SEALED_BYTES, OpensslConnection } from '../syscalls/openssl-connection.ts';
import type { OpensslContext } from '../syscalls/openssl-context.ts';
import type { EpollStream } from '../tcp/epoll-stream.ts';
import { bytesRead, memoryWith, readMemory, recordBytes, recordMemory } from '../tcp/read-memory.ts';
import type { StreamEvents, TcpStream, Window } from '../tcp-transport.ts';
import { RecordQuantum } from './record-quantum.ts';

/**
 * The maximum number of queued bytes that only answer the client, for example its requests for new keys (RFC 8446 §4.6.3). A client that
 * sends many of them and does not read is reset.
 */
const MAX_QUEUED_ANSWER_BYTES = 65_536;

const NO_BYTES = new Uint8Array(0);

/** Memory for bytes that are not in native memory. */
const copyMemory = new NativeMemory(MAX_SEALED_BYTES);

export interface OpensslStreamOptions {
  readonly context: OpensslContext;
  readonly alpn: Uint8Array;
  readonly staple: Uint8Array | undefined;
  readonly onInput: (() => void) | undefined;
}

export class OpensslStream implements TcpStream, StreamEvents {
  readonly #below: EpollStream;
  #owner: StreamEvents;
  readonly connection: OpensslConnection;
  isReading = false;
  /** Whether Weir has sent close_notify, or has closed the connection. */
  #isShut = false;
  /** Whether the connection is closed. Afterwards only `onClose` is called. */
  #isClosed = false;
  /** The error code if TLS has failed. */
  #code: string | undefined;
  /** What waits until the owner reads: bytes that came with the end of the handshake, or no bytes if only the end of the input waits. */
  #waiting: Uint8Array | undefined;
  #isResumeQueued = false;
  #readLater: (() => void) | undefined;
  readonly #quantum = new RecordQuantum();
  /** The limit of the owner. */
  #maxReadBytes = Number.POSITIVE_INFINITY;
  #queuedAnswerBytes = 0;
  /** How many bytes were written for the last `#queuedRecordBytes` bytes of the queue below. */
  #queuedPlainBytes = 0;
  #queuedRecordBytes = 0;
  /** The number of bytes that were written after the close. */
  #discarded = 0;

  constructor(below: EpollStream, { context, alpn, staple, onInput }: OpensslStreamOptions, owner: StreamEvents) {
    this.#below = below;
    this.#owner = owner;
    this.connection = new OpensslConnection(context, { alpn, staple });
    below.accept(this);
    below.deferReads(onInput);
    below.limitReadBytes(this.#quantum.bytes);
  }

  /** Processes the ClientHello, and begins to read. */
  start(unread: Uint8Array): void {
    for (let start = 0; start < unread.length && !this.#isClosed; ) {
      const length = Math.min(unread.length - start, copyMemory.bytes.length);
      copyMemory.bytes.set(unread.subarray(start, start + length));
      this.#receive(copyMemory, length);
      start += length;
    }
    this.#below.readStart();
  }

  get remoteAddress(): string {
    return this.#below.remoteAddress;
  }

  get remotePort(): number {
    return this.#below.remotePort;
  }

  get queuedBytes(): number {
    return this.#discarded + this.#queuedPlain();
  }

  get awaitsDrain(): boolean {
    return this.#below.awaitsDrain;
  }

  get maxWriteBytes(): number {
    return MAX_SEALED_BYTES;
  }

  unacknowledgedBytes(): number {
    return this.queuedBytes;
  }

  bufferedBytes(): number {
    return this.#below.bufferedBytes();
  }

  setWindow(window: Window): void {
    this.#below.setWindow(window);
  }

  accept(events: StreamEvents): void {
    this.#owner = events;
  }

  limitReadBytes(bytes: number): void {
    this.#maxReadBytes = bytes;
    this.#below.limitReadBytes(Math.min(bytes, this.#quantum.bytes));
  }

  deferReads(readLater: (() => void) | undefined): void {
    this.#readLater = readLater;
    this.#below.deferReads(readLater);
  }

  readNow(): void {
    if (this.#waiting === undefined) this.#below.readNow();
    else this.#deliverWaiting();
  }

  readStart(): void {
    this.isReading = true;
    if (this.#waiting === undefined) this.#below.readStart();
    else if (!this.#isResumeQueued) {
      this.#isResumeQueued = true;
      eventLoop.resumeLater(this);
    }
  }

  readStop(): void {
    this.isReading = false;
    this.#below.readStop();
  }

  write(bytes: Uint8Array): number {
    const memory = memoryWith(bytes);
    for (let start = 0; start < bytes.length && !this.#isShut; ) {
      const length = Math.min(bytes.length - start, MAX_SEALED_BYTES);
      let isSealed: boolean;
      if (memory === undefined) {
        copyMemory.bytes.set(length === bytes.length ? bytes : bytes.subarray(start, start + length));
        isSealed = this.connection.seal(copyMemory, 0, length);
      } else isSealed = this.connection.seal(memory, start, length);
      if (!isSealed) {
        this.#fail();
        this.#discarded += bytes.length - start;
        return this.queuedBytes;
      }
      this.#writeRecords(length);
      start += length;
    }
    if (this.#isShut) this.#discarded += bytes.length;
    return this.queuedBytes;
  }

  shutdown(): void {
    if (this.#isShut) return;
    this.#isShut = true;
    this.connection.sendCloseNotify();
    this.#writeRecords(0);
    this.#below.shutdown();
  }

  reset(): void {
    this.#isShut = true;
    this.#isClosed = true;
    this.#below.reset();
  }

  resume(): void {
    this.#isResumeQueued = false;
    if (this.#waiting === undefined || this.#isClosed) return;
    if (this.#readLater === undefined) this.#deliverWaiting();
    else this.#readLater();
  }

  #deliverWaiting(): void {
    const bytes = this.#waiting;
    if (bytes === undefined || !this.isReading || this.#isClosed) return;
    this.#waiting = undefined;
    this.#below.readStart();
    try {
      if (bytes.length > 0) this.#owner.onData(this, bytes);
    } catch (thrown) {
      this.#owner.onThrow(this, thrown);
    }
    this.#endIfReading();
  }

  // Events of the stream below.

  onConnect(): void {}

  onData(_below: TcpStream, bytes: Uint8Array): void {
    assert(bytes.buffer === readMemory.bytes.buffer && bytes.byteOffset === 0, 'the read memory');
    this.#receive(readMemory, bytes.length);
  }

  #adaptQuantum(inputBytes: number, dataBytes: number): void {
    const before = this.#quantum.bytes;
    this.#quantum.adapt(inputBytes, dataBytes);
    if (this.#quantum.bytes !== before) this.limitReadBytes(this.#maxReadBytes);
  }

  /**
   * Handles the end of the input: close_notify, or a FIN without it. Before Weir's own close_notify, only close_notify is a proper end
   * (RFC 8446 §6.1), because an attacker on the path can forge a FIN. Afterwards a FIN is accepted, because many clients send only a FIN.
   */
  onEnd(): void {
    if (this.#isClosed) return;
    const { isEstablished, hasEnded } = this.connection;
    if (isEstablished && (hasEnded || this.#isShut)) this.#owner.onEnd(this);
    else {
      this.#code = 'ECONNRESET';
      this.reset();
    }
  }

  onDrain(): void {
    this.#queuedAnswerBytes = 0;
    if (this.connection.isEstablished && !this.#isClosed) this.#owner.onDrain(this);
  }

  onClose(_below: TcpStream, code: string | undefined): void {
    this.#isShut = true;
    this.#isClosed = true;
    this.#waiting = undefined;
    this.connection.free();
    this.#owner.onClose(this, this.#code ?? code);
  }

  onThrow(_below: TcpStream, thrown: unknown): void {
    this.#owner.onThrow(this, thrown);
  }

  /** Processes bytes of the client, and passes on what they contain. */
  #receive(memory: NativeMemory, length: number): void {
    const { connection } = this;
    const wasEstablished = connection.isEstablished;
    const count = connection.receive(memory, length);
    if (wasEstablished) this.#adaptQuantum(length, count);
    this.#writeRecords(0);
    if (this.#isClosed) return;
    if (!wasEstablished && connection.isEstablished) {
      if (count > 0) this.#waiting = memory.bytes.slice(0, count);
      this.#establish();
    } else if (count > 0) this.#owner.onData(this, bytesRead(count));
    if (connection.failure !== undefined) this.#fail();
    else if (this.#waiting === undefined) this.#endIfReading();
  }

  /** Ends the input after close_notify, but not while the owner does not read. */
  #endIfReading(): void {
    if (!this.connection.hasEnded) return;
    if (this.isReading) this.#below.endInput();
    else this.#waiting = NO_BYTES;
  }

  #establish(): void {
    this.#below.deferReads(undefined);
    this.#below.readStop();
    this.#owner.onConnect(this);
  }

  /** Closes the connection after the alert that OpenSSL has written. */
  #fail(): void {
    if (this.#isClosed) return;
    this.#code = this.connection.failure ?? 'EPROTO';
    this.#writeRecords(0);
    this.#isShut = true;
    this.#isClosed = true;
    this.#below.close();
  }

  /** Sends the output of OpenSSL, which contains `plainBytes` written bytes. */
  #writeRecords(plainBytes: number): void {
    const length = this.connection.takeOutput(recordMemory);
    if (length === 0) return;
    const queuedBefore = this.#queuedPlain();
    const queued = this.#below.writeNow(recordBytes(length));
    if (queued === 0) return;
    // The last bytes of the queue are those of this write.
    const share = Math.min(1, queued / length);
    this.#queuedPlainBytes = (queued > length ? queuedBefore : 0) + Math.ceil(plainBytes * share);
    this.#queuedRecordBytes = queued;
    if (plainBytes === 0) this.#limitAnswers(length);
  }

  #limitAnswers(length: number): void {
    this.#queuedAnswerBytes += length;
    if (this.#queuedAnswerBytes <= MAX_QUEUED_ANSWER_BYTES || !this.connection.isEstablished) return;
    this.#code ??= 'ENOBUFS';
    this.reset();
  }

  /** Estimates how many written bytes are in the queue below. */
  #queuedPlain(): number {
    const records = this.#below.queuedBytes;
    if (records === 0) return 0;
    if (records >= this.#queuedRecordBytes) return this.#queuedPlainBytes;
    return Math.ceil((this.#queuedPlainBytes * records) / this.#queuedRecordBytes);
  }
}
