// What must be read of a client before it is known who it is (PROXY header of a load balancer in front) or where it goes
// (the server name of a ClientHello). Few connections need this stage. Those that do belong to their Service already, but where
// several share the listener: there a client belongs to nobody until it has said whom it wants.
import type { Grant } from '../admit/admit.ts';
import { ACTIVE, RECEIVED, SENT } from '../counters/columns.ts';
import { add, countOutcome } from '../counters/count.ts';
import type { Outcome } from '../counters/outcome.ts';
import { createProxyHeaderReader, type ProxyHeaderReader } from '../proxy-protocol/proxy-header-reader.ts';
import { type Arrived, arrivedAt } from '../relay/arrived.ts';
import type { Member } from '../relay/member.ts';
import { ticksFor } from '../relay/ticks.ts';
import type { TimeoutWheel } from '../relay/timeout-wheel.ts';
import type { AcceptedStream, SocketAddress, StreamEvents, TcpStream } from '../tcp/transport.ts';
import { type Alert, alertFor, tlsAlert } from '../tls/alert.ts';
import { type ClientHelloReader, createClientHelloReader } from '../tls/client-hello-reader.ts';
import type { CountedMembers } from './service-group.ts';

/** To send all that must be read. */
const PRELUDE_MS = 10_000;
/** To take the alert and close. */
const FAREWELL_MS = 2_000;

export interface ArrivalNeeds {
  /** From those whom the operator trusts it must come (PROXY protocol, section 2: never guess). */
  readonly proxyHeader: boolean;
  readonly clientHello: boolean;
}

export interface ArrivalOptions {
  readonly destination: SocketAddress;
  readonly needs: ArrivalNeeds;
  readonly group: CountedMembers;
  /** Its place under the limits: whoever is let in keeps it. */
  readonly grant: Grant;
  readonly wheel: TimeoutWheel<Member>;
  /** What becomes of a client that asks by TLS, as `arrived.serverName` says. */
  judge(arrived: Arrived): Verdict;
  /** All was read. The stream is not reading, and belongs to whoever takes it now. */
  letIn(stream: AcceptedStream, arrived: Arrived, grant: Grant): void;
  onInternalError(thrown: unknown): void;
}

/** Whose a client is by its ClientHello; `claim` where it was nobody's. */
export type Verdict = { readonly claim?: Claim; readonly endsTls?: boolean } & (
  | { readonly kind: 'in' }
  | {
      readonly kind: 'refused';
      readonly outcome: Outcome;
      /** Undefined: it is reset. */
      readonly alert: Alert | undefined;
    }
);

/** By a Service, of a client that was nobody's. */
export interface Claim {
  readonly group: CountedMembers;
  /** Its place under the limits of the Service; absent: it keeps the one that it has. */
  readonly grant?: Grant;
}

export class Arrival implements StreamEvents, Member {
  readonly load: undefined;
  deadline: number;
  wheelSlot = 0;
  wheelAt = -1;
  memberAt = -1;
  readonly #stream: AcceptedStream;
  readonly #options: ArrivalOptions;
  #group: CountedMembers;
  #row: Float64Array;
  #grant: Grant;
  /** Read, and not yet counted: for whom, the ClientHello says. */
  #uncounted = 0;
  #countsAlert = true;
  #proxyHeader: ProxyHeaderReader | undefined;
  #clientHello: ClientHelloReader | undefined;
  #arrived: Arrived;
  /** Set when it is refused with an alert: it waits for the client to close. */
  #farewell: Outcome | undefined;
  #isOver = false;

  constructor(stream: AcceptedStream, options: ArrivalOptions) {
    const { needs, group, grant, wheel, destination } = options;
    this.#stream = stream;
    this.#options = options;
    this.#group = group;
    this.#row = group.row;
    this.#grant = grant;
    this.#proxyHeader = needs.proxyHeader ? createProxyHeaderReader() : undefined;
    this.#clientHello = needs.clientHello ? createClientHelloReader() : undefined;
    this.#arrived = arrivedAt(destination, stream);
    this.deadline = wheel.now + ticksFor(PRELUDE_MS);
  }

  start(): void {
    add(this.#row, ACTIVE, 1);
    this.#group.members.add(this);
    this.#options.wheel.add(this);
    try {
      this.#stream.accept(this);
      this.#stream.readStart();
    } catch (thrown) {
      this.onThrow(this.#stream, thrown);
    }
  }

  end(outcome: Outcome): void {
    if (this.#isOver) return;
    this.#countReceived();
    countOutcome(this.#row, this.#farewell ?? outcome);
    this.#grant.release();
    this.#leave();
    add(this.#row, ACTIVE, -1);
    this.#stream.reset();
  }

  onExpired(): void {
    this.end('prelude-timeout');
  }

  onEndpointLeft(): void {}

  onConnect(): void {}

  onData(_stream: TcpStream, bytes: Uint8Array): void {
    if (this.#isOver || this.#farewell !== undefined) return;
    const rest = this.#proxyHeader === undefined ? bytes : this.#readProxyHeader(this.#proxyHeader, bytes);
    if (rest === undefined) return;
    this.#uncounted += rest.length;
    if (this.#clientHello === undefined) this.#letIn(Uint8Array.from(rest));
    else if (rest.length > 0) this.#readClientHello(this.#clientHello, rest);
  }

  /** A load balancer in front may look whether the port is open, and close. */
  onEnd(): void {
    if (this.#farewell === undefined) this.end('prelude-incomplete');
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
    const { ends } = found.header;
    if (ends !== null) this.#arrived = { ...this.#arrived, client: ends.source, destination: ends.destination };
    this.#proxyHeader = undefined;
    return bytes.subarray(found.consumed);
  }

  #readClientHello(reader: ClientHelloReader, bytes: Uint8Array): void {
    const found = reader.push(bytes);
    if (found === 'more') return;
    if (found.kind === 'refused') {
      this.#refuse('bad-client-hello', alertFor(found.why));
      return;
    }
    this.#arrived = { ...this.#arrived, serverName: found.hello.serverName, hasHello: true };
    const verdict = this.#options.judge(this.#arrived);
    if (verdict.claim !== undefined) this.#joinGroup(verdict.claim);
    if (verdict.endsTls) this.#countsNothing();
    if (verdict.kind === 'in') this.#letIn(reader.bytes);
    else this.#refuse(verdict.outcome, verdict.alert);
  }

  /** It counts as open of one of the two at each moment: a slot without anything open may become another tenant's. */
  #joinGroup({ group, grant }: Claim): void {
    add(group.row, ACTIVE, 1);
    add(this.#row, ACTIVE, -1);
    this.#group.members.delete(this);
    group.members.add(this);
    this.#group = group;
    this.#row = group.row;
    if (grant === undefined) return;
    this.#grant.release();
    this.#grant = grant;
  }

  #countReceived(): void {
    add(this.#row, RECEIVED, this.#uncounted);
    this.#uncounted = 0;
  }

  /** Where TLS ends here the plaintext is what counts, and there is none yet. */
  #countsNothing(): void {
    this.#uncounted = 0;
    this.#countsAlert = false;
  }

  /** `prelude` is counted by now. */
  #letIn(prelude: Uint8Array): void {
    this.#countReceived();
    this.#stream.readStop();
    this.#leave();
    try {
      this.#options.letIn(this.#stream, { ...this.#arrived, prelude }, this.#grant);
    } finally {
      // The last: a slot without anything open may become another tenant's, and a drain without any is over.
      add(this.#row, ACTIVE, -1);
    }
  }

  /** What the client still sends is read and forgotten: unread bytes would make the kernel reset it before it saw the alert. */
  #refuse(outcome: Outcome, alert: Alert | undefined): void {
    this.#countReceived();
    if (alert === undefined) {
      this.end(outcome);
      return;
    }
    const { wheel } = this.#options;
    const record = tlsAlert(alert);
    this.#farewell = outcome;
    const taken = record.length - this.#stream.write(record);
    if (this.#countsAlert) add(this.#row, SENT, taken);
    this.#stream.shutdown();
    this.deadline = wheel.now + ticksFor(FAREWELL_MS);
    wheel.advance(this);
  }

  #leave(): void {
    this.#isOver = true;
    this.#options.wheel.remove(this);
    this.#group.members.delete(this);
  }
}
