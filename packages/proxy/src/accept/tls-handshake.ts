import type { AccessLog } from '../access-log/access-log.ts';
import { ACTIVE, addToCounter, countOutcome } from '../metering/counters.ts';
import type { Outcome } from '../metering/outcome.ts';
import type { CountedSessions } from '../relay/service-sessions.ts';
import type { Session } from '../relay/session.ts';
import { type TimeoutWheel, ticksFor } from '../relay/timeout-wheel.ts';
import type { AcceptedStream, StreamEvents, TcpStream } from '../transport/tcp-transport.ts';
import { startTls, type TlsServerOptions, type TlsServerStream } from '../transport/tls/tls-server.ts';
import type { HandshakeQueue, WaitingHandshake } from './handshake-queue.ts';
import { type AdmittedConnection, hasAccessLog, logRefusal } from './refuse.ts';

/** The maximum time from the ClientHello to the end of the TLS handshake. */
const HANDSHAKE_TIMEOUT_MS = 10_000;

export interface TlsHandshakeOptions {
  readonly tls: TlsServerOptions;
  readonly admitted: AdmittedConnection;
  readonly service: CountedSessions;
  readonly wheel: TimeoutWheel<Session>;
  readonly queue: HandshakeQueue;
  readonly accessLog: AccessLog;
  /** Returns the time in milliseconds since the epoch. */
  now(): number;
  /** Called when the handshake is complete. The stream is paused, and the callee owns it. */
  onSecured(stream: TcpStream, admitted: AdmittedConnection): void;
  onInternalError(thrown: unknown): void;
}

/**
 * The TLS handshake with an admitted client whose ClientHello was read. No endpoint is connected yet. Everything that
 * the client sends waits in the `HandshakeQueue` before it is processed.
 */
export class TlsHandshake implements StreamEvents, Session, WaitingHandshake {
  readonly endpointStats: undefined;
  readonly deadline: number;
  wheelSlot = 0;
  wheelIndex = -1;
  sessionIndex = -1;
  readonly #client: AcceptedStream;
  readonly #options: TlsHandshakeOptions;
  readonly #counters: Float64Array;
  /** Undefined until the ClientHello is processed. */
  #secured: TlsServerStream | undefined;
  #isEnded = false;
  #isInputQueued = false;

  constructor(client: AcceptedStream, options: TlsHandshakeOptions) {
    this.#client = client;
    this.#options = options;
    this.#counters = options.service.counters;
    this.deadline = options.wheel.now + ticksFor(HANDSHAKE_TIMEOUT_MS);
  }

  start(): void {
    const { service, wheel, admitted, queue } = this.#options;
    const { tenant } = admitted.admission.limiters;
    addToCounter(this.#counters, ACTIVE, 1);
    service.sessions.add(this);
    wheel.add(this);
    this.#client.accept(this);
    if (!queue.tryAdd(tenant, this, admitted.info.prereadBytes.length)) this.end('rate-limit');
  }

  get hasEnded(): boolean {
    return this.#isEnded;
  }

  step(): void {
    this.#isInputQueued = false;
    try {
      if (this.#secured === undefined) this.#begin();
      else if (this.#secured.readInput()) this.#queueInput();
    } catch (thrown) {
      this.onThrow(this.#client, thrown);
    }
  }

  #begin(): void {
    const { tls, admitted } = this.#options;
    const onInput = (): void => this.#queueInput();
    this.#secured = startTls(this.#client, { tls, unread: admitted.info.prereadBytes, onInput }, this);
  }

  #queueInput(): void {
    if (this.#isEnded || this.#isInputQueued) return;
    this.#isInputQueued = true;
    const { admitted, queue } = this.#options;
    queue.addBegun(admitted.admission.limiters.tenant, this);
  }

  end(outcome: Outcome): void {
    if (this.#isEnded) return;
    const { admitted, service, accessLog } = this.#options;
    try {
      countOutcome(this.#counters, outcome);
      if (hasAccessLog(service)) logRefusal(service, { outcome, accessLog, info: admitted.info });
      admitted.admission.release();
      this.#unregister();
      (this.#secured?.stream ?? this.#client).reset();
    } finally {
      addToCounter(this.#counters, ACTIVE, -1);
    }
  }

  onExpired(): void {
    this.end('prelude-timeout');
  }

  onEndpointUnavailable(): void {}

  onConnect(): void {
    const secured = this.#secured;
    if (this.#isEnded || secured === undefined) return;
    const tls = secured.negotiated(this.#options.now());
    if (tls === undefined) {
      this.end('tls-handshake-failed');
      return;
    }
    const { admitted, onSecured } = this.#options;
    this.#unregister();
    try {
      onSecured(secured.stream, { ...admitted, info: { ...admitted.info, tls, prereadBytes: NO_BYTES } });
    } finally {
      // Must come last: when no connection is active, the counters may be reused for another tenant, and a drain ends.
      addToCounter(this.#counters, ACTIVE, -1);
    }
  }

  onData(): void {}

  onEnd(): void {
    this.end('tls-handshake-failed');
  }

  onDrain(): void {}

  onClose(): void {
    this.end('tls-handshake-failed');
  }

  onThrow(_stream: TcpStream, thrown: unknown): void {
    this.#options.onInternalError(thrown);
    this.end('internal');
  }

  #unregister(): void {
    this.#isEnded = true;
    this.#options.wheel.remove(this);
    this.#options.service.sessions.delete(this);
  }
}

const NO_BYTES = new Uint8Array(0);
