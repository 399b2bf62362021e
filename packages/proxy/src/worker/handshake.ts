// The TLS handshake with a client whose ClientHello was read: it belongs to a Service, has its place under its limits, and no endpoint
// has heard of it yet.
import { ACTIVE } from '../counters/columns.ts';
import { add, countOutcome } from '../counters/count.ts';
import type { Outcome } from '../counters/outcome.ts';
import type { Member } from '../relay/member.ts';
import { ticksFor } from '../relay/ticks.ts';
import type { TimeoutWheel } from '../relay/timeout-wheel.ts';
import type { AcceptedStream, StreamEvents, TcpStream } from '../tcp/transport.ts';
import { type SecuredStream, secure, type TlsTerms } from '../tls/tls-stream.ts';
import type { Placed } from './refuse.ts';
import type { CountedMembers } from './service-group.ts';

/** From the ClientHello to the client's last word. */
const HANDSHAKE_MS = 10_000;

export interface HandshakeOptions {
  readonly terms: TlsTerms;
  readonly placed: Placed;
  readonly group: CountedMembers;
  readonly wheel: TimeoutWheel<Member>;
  /** Milliseconds since the epoch. */
  now(): number;
  /** It is done. The stream is not reading, and belongs to whoever takes it now. */
  letIn(stream: TcpStream, placed: Placed): void;
  onInternalError(thrown: unknown): void;
}

export class Handshake implements StreamEvents, Member {
  readonly load: undefined;
  readonly deadline: number;
  wheelSlot = 0;
  wheelAt = -1;
  memberAt = -1;
  readonly #given: AcceptedStream;
  readonly #options: HandshakeOptions;
  readonly #row: Float64Array;
  #secured: SecuredStream | undefined;
  #isOver = false;

  constructor(given: AcceptedStream, options: HandshakeOptions) {
    this.#given = given;
    this.#options = options;
    this.#row = options.group.row;
    this.deadline = options.wheel.now + ticksFor(HANDSHAKE_MS);
  }

  start(): void {
    const { group, wheel, terms, placed } = this.#options;
    add(this.#row, ACTIVE, 1);
    group.members.add(this);
    wheel.add(this);
    try {
      this.#secured = secure(this.#given, { terms, unread: placed.arrived.prelude }, this);
    } catch (thrown) {
      this.onThrow(this.#given, thrown);
    }
  }

  end(outcome: Outcome): void {
    if (this.#isOver) return;
    try {
      countOutcome(this.#row, outcome);
      this.#options.placed.grant.release();
      this.#leave();
      (this.#secured?.stream ?? this.#given).reset();
    } finally {
      add(this.#row, ACTIVE, -1);
    }
  }

  onExpired(): void {
    this.end('prelude-timeout');
  }

  onEndpointLeft(): void {}

  onConnect(): void {
    const secured = this.#secured;
    if (this.#isOver || secured === undefined) return;
    const tls = secured.agreement(this.#options.now());
    if (tls === undefined) {
      this.end('tls-handshake-failed');
      return;
    }
    const { placed, letIn } = this.#options;
    this.#leave();
    try {
      letIn(secured.stream, { ...placed, arrived: { ...placed.arrived, tls, prelude: NOTHING } });
    } finally {
      // The last: a slot without anything open may become another tenant's, and a drain without any is over.
      add(this.#row, ACTIVE, -1);
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

  #leave(): void {
    this.#isOver = true;
    this.#options.wheel.remove(this);
    this.#options.group.members.delete(this);
  }
}

const NOTHING = new Uint8Array(0);
