import type { Admission } from '../limits/admission.ts';
import { ACTIVE, addToCounter, countOutcome, RECEIVED, SENT } from '../metering/counters.ts';
import type { Outcome } from '../metering/outcome.ts';
import { type ClientHelloReader, createClientHelloReader } from '../protocol/client-hello-reader.ts';
import { createProxyHeaderReader, type ProxyHeaderReader } from '../protocol/read-proxy-header.ts';
import { encodeTlsAlert, type TlsAlert, tlsAlertFor } from '../protocol/tls-alert.ts';
import { type DownstreamInfo, downstreamInfoOf } from '../relay/downstream-info.ts';
import type { CountedSessions } from '../relay/service-sessions.ts';
import type { Session } from '../relay/session.ts';
import { type TimeoutWheel, ticksFor } from '../relay/timeout-wheel.ts';
import type { AcceptedStream, SocketAddress, StreamEvents, TcpStream } from '../transport/tcp-transport.ts';

// What must be read of a client before it is known who it is (PROXY header of a load balancer in front) or where it goes
// (the server name of a ClientHello). Few connections need this stage. Those that do belong to their Service already, but where
// several share the listener: there a client belongs to nobody until it has said whom it wants.

/** To send all that must be read. */
const PREREAD_TIMEOUT_MS = 10_000;
/** To take the alert and close. */
const ALERT_LINGER_MS = 2_000;

export interface PrereadSteps {
  /** From those whom the operator trusts it must come (PROXY protocol, section 2: never guess). */
  readonly proxyHeader: boolean;
  readonly clientHello: boolean;
}

export interface PendingConnectionOptions {
  readonly destination: SocketAddress;
  readonly preread: PrereadSteps;
  readonly owner: CountedSessions;
  /** Its place under the limits: whoever is let in keeps it. */
  readonly admission: Admission;
  readonly wheel: TimeoutWheel<Session>;
  /** What becomes of a client that asks by TLS, as `arrived.serverName` says. */
  route(arrived: DownstreamInfo): RoutingDecision;
  /** All was read. The stream is not reading, and belongs to whoever takes it now. */
  onRouted(stream: AcceptedStream, arrived: DownstreamInfo, grant: Admission): void;
  onInternalError(thrown: unknown): void;
}

/** Whose a client is by its ClientHello; `claim` where it was nobody's. */
export type RoutingDecision = { readonly claim?: ServiceClaim; readonly endsTls?: boolean } & (
  | { readonly kind: 'in' }
  | {
      readonly kind: 'refused';
      readonly outcome: Outcome;
      /** Undefined: it is reset. */
      readonly alert: TlsAlert | undefined;
    }
);

/** By a Service, of a client that was nobody's. */
export interface ServiceClaim {
  readonly service: CountedSessions;
  /** Its place under the limits of the Service; absent: it keeps the one that it has. */
  readonly admission?: Admission;
}

export class PendingConnection implements StreamEvents, Session {
  readonly endpointStats: undefined;
  deadline: number;
  wheelSlot = 0;
  wheelIndex = -1;
  sessionIndex = -1;
  readonly #stream: AcceptedStream;
  readonly #options: PendingConnectionOptions;
  #owner: CountedSessions;
  #counters: Float64Array;
  #grant: Admission;
  /** Read, and not yet counted: for whom, the ClientHello says. */
  #uncountedBytes = 0;
  #countsAlert = true;
  #proxyHeaderReader: ProxyHeaderReader | undefined;
  #clientHelloReader: ClientHelloReader | undefined;
  #downstreamInfo: DownstreamInfo;
  /** Set when it is refused with an alert: it waits for the client to close. */
  #lingerOutcome: Outcome | undefined;
  #isEnded = false;

  constructor(stream: AcceptedStream, options: PendingConnectionOptions) {
    const { preread, owner, admission, wheel, destination } = options;
    this.#stream = stream;
    this.#options = options;
    this.#owner = owner;
    this.#counters = owner.counters;
    this.#grant = admission;
    this.#proxyHeaderReader = preread.proxyHeader ? createProxyHeaderReader() : undefined;
    this.#clientHelloReader = preread.clientHello ? createClientHelloReader() : undefined;
    this.#downstreamInfo = downstreamInfoOf(destination, stream);
    this.deadline = wheel.now + ticksFor(PREREAD_TIMEOUT_MS);
  }

  start(): void {
    addToCounter(this.#counters, ACTIVE, 1);
    this.#owner.sessions.add(this);
    this.#options.wheel.add(this);
    try {
      this.#stream.accept(this);
      this.#stream.readStart();
    } catch (thrown) {
      this.onThrow(this.#stream, thrown);
    }
  }

  end(outcome: Outcome): void {
    if (this.#isEnded) return;
    this.#countReceived();
    countOutcome(this.#counters, this.#lingerOutcome ?? outcome);
    this.#grant.release();
    this.#unregister();
    addToCounter(this.#counters, ACTIVE, -1);
    this.#stream.reset();
  }

  onExpired(): void {
    this.end('prelude-timeout');
  }

  onEndpointUnavailable(): void {}

  onConnect(): void {}

  onData(_stream: TcpStream, bytes: Uint8Array): void {
    if (this.#isEnded || this.#lingerOutcome !== undefined) return;
    const rest = this.#proxyHeaderReader === undefined ? bytes : this.#readProxyHeader(this.#proxyHeaderReader, bytes);
    if (rest === undefined) return;
    this.#uncountedBytes += rest.length;
    if (this.#clientHelloReader === undefined) this.#handOver(Uint8Array.from(rest));
    else if (rest.length > 0) this.#readClientHello(this.#clientHelloReader, rest);
  }

  /** A load balancer in front may look whether the port is open, and close. */
  onEnd(): void {
    if (this.#lingerOutcome === undefined) this.end('prelude-incomplete');
  }

  onDrain(): void {}

  onClose(): void {
    this.end('prelude-incomplete');
  }

  onThrow(_stream: TcpStream, thrown: unknown): void {
    this.#options.onInternalError(thrown);
    this.end('internal');
  }

  /** What follows the header; undefined: nothing yet, or it was refused. */
  #readProxyHeader(reader: ProxyHeaderReader, bytes: Uint8Array): Uint8Array | undefined {
    const found = reader.push(bytes);
    if (found === 'more') return undefined;
    if (found.kind !== 'header') {
      this.end('bad-proxy-header');
      return undefined;
    }
    const { addresses } = found.header;
    if (addresses !== null)
      this.#downstreamInfo = { ...this.#downstreamInfo, client: addresses.source, destination: addresses.destination };
    this.#proxyHeaderReader = undefined;
    return bytes.subarray(found.consumed);
  }

  #readClientHello(reader: ClientHelloReader, bytes: Uint8Array): void {
    const found = reader.push(bytes);
    if (found === 'more') return;
    if (found.kind === 'refused') {
      this.#refuse('bad-client-hello', tlsAlertFor(found.why));
      return;
    }
    this.#downstreamInfo = { ...this.#downstreamInfo, serverName: found.hello.serverName, hasClientHello: true };
    const verdict = this.#options.route(this.#downstreamInfo);
    if (verdict.claim !== undefined) this.#moveToService(verdict.claim);
    if (verdict.endsTls) this.#discardUncounted();
    if (verdict.kind === 'in') this.#handOver(reader.bytes);
    else this.#refuse(verdict.outcome, verdict.alert);
  }

  /** It counts as open of one of the two at each moment: a slot without anything open may become another tenant's. */
  #moveToService({ service, admission }: ServiceClaim): void {
    addToCounter(service.counters, ACTIVE, 1);
    addToCounter(this.#counters, ACTIVE, -1);
    this.#owner.sessions.delete(this);
    service.sessions.add(this);
    this.#owner = service;
    this.#counters = service.counters;
    if (admission === undefined) return;
    this.#grant.release();
    this.#grant = admission;
  }

  #countReceived(): void {
    addToCounter(this.#counters, RECEIVED, this.#uncountedBytes);
    this.#uncountedBytes = 0;
  }

  /** Where TLS ends here the plaintext is what counts, and there is none yet. */
  #discardUncounted(): void {
    this.#uncountedBytes = 0;
    this.#countsAlert = false;
  }

  /** `prelude` is counted by now. */
  #handOver(prereadBytes: Uint8Array): void {
    this.#countReceived();
    this.#stream.readStop();
    this.#unregister();
    try {
      this.#options.onRouted(this.#stream, { ...this.#downstreamInfo, prereadBytes }, this.#grant);
    } finally {
      // The last: a slot without anything open may become another tenant's, and a drain without any is over.
      addToCounter(this.#counters, ACTIVE, -1);
    }
  }

  /** What the client still sends is read and forgotten: unread bytes would make the kernel reset it before it saw the alert. */
  #refuse(outcome: Outcome, alert: TlsAlert | undefined): void {
    this.#countReceived();
    if (alert === undefined) {
      this.end(outcome);
      return;
    }
    const { wheel } = this.#options;
    const record = encodeTlsAlert(alert);
    this.#lingerOutcome = outcome;
    const taken = record.length - this.#stream.write(record);
    if (this.#countsAlert) addToCounter(this.#counters, SENT, taken);
    this.#stream.shutdown();
    this.deadline = wheel.now + ticksFor(ALERT_LINGER_MS);
    wheel.advance(this);
  }

  #unregister(): void {
    this.#isEnded = true;
    this.#options.wheel.remove(this);
    this.#owner.sessions.delete(this);
  }
}

/** Each may hold a descriptor and the 16 KiB of a ClientHello that is not whole. */
const MAX_PENDING_CONNECTIONS = 1_024;

/**
 * Clients of shared listeners that have not said yet whom they want, so that no tenant's limits concern them. Whoever keeps us
 * waiting longest makes room for the next: a flood of those who say nothing gets in the way of each other, and not of one who
 * says it at once.
 */
export class PendingConnections implements CountedSessions {
  /** In the order in which they came. */
  readonly sessions: Set<Session> = new Set();
  readonly counters: Float64Array;

  constructor(row: Float64Array) {
    this.counters = row;
  }

  /** For one more. */
  evictOldestIfFull(): void {
    if (this.sessions.size < MAX_PENDING_CONNECTIONS) return;
    const [longest] = this.sessions;
    longest?.end('prelude-timeout');
  }
}
