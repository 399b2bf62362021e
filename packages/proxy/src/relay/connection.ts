// One client connection and its endpoint: bytes go across, are counted where they pass, and the end of either side is
// passed on as what it was (FIN as FIN, RST as RST). One long file: any part of it made an object of its own would be one
// more per connection, and most methods look at the state of both sides.
import type { EndpointLoad } from '@weir/model/data-plane';
import type { Grant } from '../admit/admit.ts';
import type { Direction } from '../admit/limit-sheet.ts';
import { ACTIVE, CONNECTIONS, RECEIVED, SENT } from '../counters/columns.ts';
import { add, countOutcome } from '../counters/count.ts';
import type { Outcome } from '../counters/outcome.ts';
import { type PacedReader, Pacing } from '../shape/pacing.ts';
import type { StreamEvents, TcpStream } from '../tcp/transport.ts';
import type { Arrived } from './arrived.ts';
import type { ConnectionHome, RelayContext } from './connection-home.ts';
import { firstBytesFor } from './first-bytes.ts';
import { isLocalFailure } from './local-failures.ts';
import type { Member } from './member.ts';
import { ticksFor } from './ticks.ts';

/** How many times its connect timeout a client is kept waiting while endpoint after endpoint fails. */
const PATIENCE = 3;
/** For how many idle timeouts a limit may hold it without a turn: its client may be gone, which only reading would show. */
const LONGEST_HOLD = 10;

export class Connection implements StreamEvents, Member, PacedReader {
  deadline = 0;
  wheelSlot = 0;
  wheelAt = -1;
  memberAt = -1;
  readonly #context: RelayContext;
  readonly #home: ConnectionHome;
  /** Of the counters: fixed for the life of the connection, also when its Service changes hands meanwhile. */
  readonly #row: Float64Array;
  readonly #client: TcpStream;
  readonly #arrived: Arrived;
  /** Its place under the limits. */
  readonly #grant: Grant;
  readonly #pacing: Pacing;
  readonly #idleTicks: number;
  readonly #lastTry: number;
  readonly #tried: EndpointLoad[] = [];
  #endpoint: TcpStream | undefined;
  #load: EndpointLoad | undefined;
  #isConnected = false;
  #isEnded = false;
  #hasClientClosed = false;
  #hasEndpointClosed = false;
  /** Written for the client, not yet taken by the kernel: not yet sent. */
  #unsent = 0;
  /** Idle timeouts in a row that it was held for. */
  #holds = 0;

  constructor(
    client: TcpStream,
    arrived: Arrived,
    { context, home, row, grant }: { context: RelayContext; home: ConnectionHome; row: Float64Array; grant: Grant },
  ) {
    const { settings } = home.route;
    this.#client = client;
    this.#arrived = arrived;
    this.#context = context;
    this.#home = home;
    this.#row = row;
    this.#grant = grant;
    this.#pacing = new Pacing(context.shaper.lanesFor(grant.budgets), this);
    this.#idleTicks = ticksFor(settings.idleTimeoutMs);
    this.#lastTry = context.wheel.now + ticksFor(settings.connectTimeoutMs) * PATIENCE;
    add(row, CONNECTIONS, 1);
    add(row, ACTIVE, 1);
  }

  /** The endpoint that it goes to, or is trying to. */
  get load(): EndpointLoad | undefined {
    return this.#load;
  }

  /** The client's bytes wait in the kernel until an endpoint has answered. */
  start(): void {
    const { wheel } = this.#context;
    this.#guarded(() => {
      this.#home.members.add(this);
      this.#client.readAtMost?.(this.#pacing.slice('in'));
      this.#client.accept(this);
      this.deadline = wheel.now + ticksFor(this.#home.route.settings.connectTimeoutMs);
      wheel.add(this);
      this.#connect('connect-failed');
    });
  }

  /** Ends both sides by RST, so that what the kernel still holds is discarded. Whatever throws: its slot is free after it. */
  end(outcome: Outcome): void {
    if (this.#isEnded) return;
    this.#isEnded = true;
    try {
      this.#leave();
      countOutcome(this.#row, outcome);
      if (outcome !== 'completed') this.#reset();
    } finally {
      add(this.#row, ACTIVE, -1);
    }
  }

  onExpired(): void {
    if (this.#pacing.isHolding && this.#holds < LONGEST_HOLD) this.#waitOn();
    else if (this.#isConnected) this.end('idle-timeout');
    else this.#guarded(() => this.#tryNext('connect-timeout'));
  }

  /** Nothing of the client was sent yet: where there is another endpoint, it need not wait for one that may be gone. */
  onEndpointLeft(): void {
    // Whoever has no further try may still be answered.
    if (this.#isEnded || this.#isConnected || this.#context.wheel.now >= this.#lastTry) return;
    this.#guarded(() => {
      if (this.#home.hasUntried(this.#tried)) this.#tryNext('connect-failed');
    });
  }

  onConnect(stream: TcpStream): void {
    if (stream !== this.#endpoint || this.#isEnded || this.#load === undefined) return;
    this.#isConnected = true;
    this.#home.onConnected(this.#load);
    this.#touch();
    // The idle timeout may be shorter than what was left to connect.
    if (this.deadline < this.wheelSlot) this.#context.wheel.advance(this);
    this.#read(stream);
    const first = firstBytesFor(this.#home.route.settings, this.#arrived);
    if (first.length === 0 || stream.write(first) === 0) this.#read(this.#client);
  }

  onData(from: TcpStream, bytes: Uint8Array): void {
    if (this.#isEnded) return;
    this.#touch();
    if (from === this.#client) this.#toEndpoint(bytes);
    else if (from === this.#endpoint) this.#toClient(bytes);
  }

  onEnd(from: TcpStream): void {
    if (this.#isEnded) return;
    this.#touch();
    this.#peerOf(from)?.shutdown();
  }

  onDrain(taken: TcpStream): void {
    if (this.#isEnded) return;
    this.#touch();
    if (taken === this.#client) this.#countSent(0);
    const source = this.#peerOf(taken);
    if (source !== undefined) this.#read(source);
  }

  onClose(stream: TcpStream, code: string | undefined): void {
    if (this.#isEnded) return;
    const isClient = stream === this.#client;
    if (!isClient && stream !== this.#endpoint) return;
    if (!isClient && !this.#isConnected) {
      this.#context.onConnectError(code);
      this.#guarded(() => this.#tryNext('connect-failed', code));
    } else if (code !== undefined) this.end(isClient ? 'reset-by-client' : 'reset-by-endpoint');
    else this.#closedWell(isClient);
  }

  /** What waited for bytes per second may go on, unless its target has not taken the last ones yet. */
  onTurn(direction: Direction): void {
    const source = direction === 'in' ? this.#client : this.#endpoint;
    const target = direction === 'in' ? this.#endpoint : this.#client;
    if (source !== undefined && target?.queued === 0) this.#guarded(() => source.readStart());
  }

  onThrow(_stream: TcpStream, thrown: unknown): void {
    this.#context.onInternalError(thrown);
    this.end('internal');
  }

  #connect(otherwise: Outcome): void {
    const { client } = this.#arrived;
    // When all that should work have failed, what is known of the others proves as little.
    const load = this.#home.choose(client, this.#tried) ?? this.#home.chooseUnused(this.#tried);
    if (load === undefined) {
      this.end(otherwise);
      return;
    }
    this.#tried.push(load);
    this.#load = load;
    load.active += 1;
    this.#endpoint = this.#context.transport.connect(load.endpoint, this);
    this.#endpoint.readAtMost?.(Math.min(this.#pacing.slice('out'), this.#client.mostAtOnce ?? Infinity));
  }

  /** `code` as in errno; undefined: it did not answer in time. */
  #tryNext(failure: Outcome, code?: string): void {
    const { wheel } = this.#context;
    const last = this.#endpoint;
    this.#endpoint = undefined;
    last?.reset();
    if (this.#load !== undefined && !isLocalFailure(code)) this.#home.onConnectFailed(this.#load);
    this.#leaveEndpoint();
    if (wheel.now >= this.#lastTry) {
      this.end(failure);
      return;
    }
    this.deadline = wheel.now + ticksFor(this.#home.route.settings.connectTimeoutMs);
    wheel.advance(this);
    this.#connect(failure);
  }

  #leave(): void {
    this.#context.wheel.remove(this);
    this.#home.members.delete(this);
    this.#leaveEndpoint();
    this.#grant.release();
    this.#pacing.end();
    this.#countSent(this.#client.queued);
  }

  #reset(): void {
    try {
      this.#client.reset();
    } finally {
      this.#endpoint?.reset();
    }
  }

  #leaveEndpoint(): void {
    if (this.#load !== undefined) this.#load.active -= 1;
    this.#load = undefined;
  }

  #toEndpoint(bytes: Uint8Array): void {
    add(this.#row, RECEIVED, bytes.length);
    if (this.#endpoint === undefined) return;
    const queued = this.#endpoint.write(bytes);
    if (!this.#pacing.mayRead('in', bytes.length) || queued > 0) this.#client.readStop();
  }

  #toClient(bytes: Uint8Array): void {
    this.#unsent += bytes.length;
    const queued = this.#client.write(bytes);
    this.#countSent(queued);
    if (!this.#pacing.mayRead('out', bytes.length) || queued > 0) this.#endpoint?.readStop();
  }

  #countSent(queued: number): void {
    if (this.#unsent === queued) return;
    add(this.#row, SENT, this.#unsent - queued);
    this.#unsent = queued;
  }

  #closedWell(isClient: boolean): void {
    if (isClient) this.#hasClientClosed = true;
    else this.#hasEndpointClosed = true;
    if (this.#hasClientClosed && this.#hasEndpointClosed) this.end('completed');
  }

  #peerOf(stream: TcpStream): TcpStream | undefined {
    return stream === this.#client ? this.#endpoint : this.#client;
  }

  /** Unless its Service or tenant was too fast: then when its turn has come. */
  #read(source: TcpStream): void {
    if (this.#pacing.mayRead(source === this.#client ? 'in' : 'out', 0)) source.readStart();
  }

  /** It is not idle: it is not let. */
  #waitOn(): void {
    this.#holds += 1;
    this.deadline = this.#context.wheel.now + this.#idleTicks;
    this.#context.wheel.add(this);
  }

  #touch(): void {
    this.#holds = 0;
    this.deadline = this.#context.wheel.now + this.#idleTicks;
  }

  /** For what no event of a stream has called, and is therefore not guarded there. */
  #guarded(act: () => void): void {
    try {
      act();
    } catch (thrown) {
      this.onThrow(this.#client, thrown);
    }
  }
}
