// The access log of a worker: one JSON line for each HTTP request, TCP connection or UDP flow that ends, if its Service asks
// for a log. The bytes of a request's head are valid only until the event handler returns, so the first part of a request's
// line is written when the request begins. A Service without an access log costs one comparison per request or connection.
import type { AccessLogSettings, ServiceEntry } from '@weir/model/data-plane';
import type { AnswerReason } from '../http/current-request.ts';
import type { EndpointRequest } from '../http/endpoint-request.ts';
import { REDIRECT_STATUS } from '../http/https-policy.ts';
import { asciiBytes, ByteWriter } from '../http/passes/byte-writer.ts';
import { ERROR_REASONS } from '../http/passes/error-answer.ts';
import { ACCESS_LOG_DROPPED, addToCounter } from '../metering/counters.ts';
import type { CountedSessions } from '../relay/service-sessions.ts';
import { type EndedConnection, writeConnection } from './connection-line.ts';
import { writeThreeDigits } from './json-writer.ts';
import type { LogBuffer } from './log-buffer.ts';
import { type RequestToLog, writeDetails, writeResult, writeTarget } from './log-line.ts';

const MILLION = 1_000_000;
const SECOND_MS = 1_000;
/** Enough for a line whose texts have their maximum lengths and consist of six-byte escapes such as `\u000a`. */
const LINE_BYTES = 32_768;
/**
 * The maximum number of refused connections of a Service that each worker logs per second. Further refused connections count
 * as dropped lines, because refusing a connection costs less than writing a line.
 */
const MAX_REFUSALS_PER_SECOND = 50;

/** A request that is logged when it ends. The session adds what it learns about the request. */
export class LoggedRequest {
  receivedBytes = 0;
  sentBytes = 0;
  /** The endpoints that are tried. Undefined if no endpoint gets the request. */
  request: EndpointRequest | undefined;
  readonly startedAt: number;
  /** The JSON members from `client` to `path`. */
  readonly target: Uint8Array;
  /** The JSON members from `requestId` to the end of the line. */
  readonly details: Uint8Array;
  #status = 0;
  #endpointMs = Number.NaN;
  #reason: AnswerReason | undefined;
  #isComplete = false;

  constructor(start: Pick<LoggedRequest, 'startedAt' | 'target' | 'details'>) {
    this.startedAt = start.startedAt;
    this.target = start.target;
    this.details = start.details;
  }

  /** The status that the client received; 0 for none. */
  get status(): number {
    return this.#status;
  }

  /** The time from the request at the endpoint to the head of its answer; NaN for none. */
  get endpointMs(): number {
    return this.#endpointMs;
  }

  /** Why the proxy answered in place of an endpoint. */
  get reason(): AnswerReason | undefined {
    return this.#reason;
  }

  /** Whether the client was sent a complete answer. */
  get isComplete(): boolean {
    return this.#isComplete;
  }

  /** Records the head of an endpoint's final answer. `sentAt` is NaN if the endpoint answered before it received anything. */
  onAnswer(status: number, sentAt: number, now: number): void {
    this.#status = status;
    this.#endpointMs = now - sentAt;
  }

  complete(reason: AnswerReason | undefined): void {
    this.#isComplete = true;
    this.#reason = reason;
    if (reason === 'https-redirect') this.#status = REDIRECT_STATUS;
    // The status of a redirect of an HTTP route is that of the route.
    else if (reason !== undefined && reason !== 'redirect') this.#status = ERROR_REASONS[reason].status;
  }
}

export interface AccessLogOptions {
  readonly node: string;
  readonly buffer: LogBuffer;
  /** Returns milliseconds of a monotonic clock. */
  readonly now: () => number;
  /** Returns milliseconds since the epoch; by default `Date.now`. */
  readonly wallClock?: (() => number) | undefined;
}

export class AccessLog {
  readonly #node: string;
  readonly #buffer: LogBuffer;
  readonly now: () => number;
  readonly #wallClock: () => number;
  readonly #out = new ByteWriter(new Uint8Array(0));
  readonly #time = new TimeText();
  /** By entry: the JSON members that name the node and the Service, and the number of refusals. */
  readonly #names = new WeakMap<ServiceEntry, ServiceNames>();

  constructor({ node, buffer, now, wallClock = Date.now }: AccessLogOptions) {
    this.#node = node;
    this.#buffer = buffer;
    this.now = now;
    this.#wallClock = wallClock;
  }

  /**
   * Begins the log of a request at `startedAt` (milliseconds of `Turns.nowMs`). Returns undefined if the request is not
   * in the sample.
   */
  begin(settings: AccessLogSettings, source: RequestToLog, startedAt: number): LoggedRequest | undefined {
    if (!isSampled(settings)) return undefined;
    const out = this.#restart();
    writeTarget(out, source, settings.hasQuery === true);
    const target = out.memory.slice(0, out.at);
    out.at = 0;
    writeDetails(out, source);
    const details = out.memory.slice(0, out.at);
    return new LoggedRequest({ startedAt, target, details });
  }

  /** Writes the line of a request that ended at `now`. `counters` count the line if it is dropped. */
  end(
    request: LoggedRequest,
    { service, counters }: { readonly service: ServiceEntry; readonly counters: Float64Array },
    now: number,
  ): void {
    const names = this.#namesOf(service);
    const out = this.#startLine(names);
    out.bytes(request.target);
    writeResult(out, request, now);
    out.bytes(request.details);
    this.#addLine(names, counters);
  }

  /** Whether a new connection of the Service is logged. */
  samples({ entry }: CountedSessions): boolean {
    const settings = entry?.settings?.accessLog;
    return settings !== undefined && isSampled(settings);
  }

  /** Writes the line of a connection or flow that was relayed. `counters` are those of the connection. */
  endConnection(connection: EndedConnection, entry: ServiceEntry, counters: Float64Array): void {
    const names = this.#namesOf(entry);
    writeConnection(this.#startLine(names), connection);
    this.#addLine(names, counters);
  }

  /** Writes the line of a connection that was not relayed, if its Service is known and the connection is in the sample. */
  refuseConnection(connection: EndedConnection, service: CountedSessions): void {
    const { entry, counters } = service;
    if (entry === undefined || !this.samples(service)) return;
    const names = this.#namesOf(entry);
    const second = Math.floor(this.now() / SECOND_MS);
    if (names.refusalSecond !== second) {
      names.refusalSecond = second;
      names.refusals = 0;
    }
    names.refusals += 1;
    if (names.refusals > MAX_REFUSALS_PER_SECOND) addToCounter(counters, ACCESS_LOG_DROPPED, 1);
    else this.endConnection(connection, entry, counters);
  }

  /** Sends the buffered lines. */
  flush(): void {
    this.#buffer.flush();
  }

  #startLine(names: ServiceNames): ByteWriter {
    const out = this.#restart();
    out.bytes(LINE_START);
    out.bytes(this.#time.at(this.#wallClock()));
    out.bytes(names.members);
    return out;
  }

  /** Adds the line in `#out`, or counts the line as dropped. */
  #addLine(names: ServiceNames, counters: Float64Array): void {
    const { memory, at } = this.#out;
    if (at < 0 || !this.#buffer.add(memory, at, names)) addToCounter(counters, ACCESS_LOG_DROPPED, 1);
  }

  #restart(): ByteWriter {
    const out = this.#out;
    if (out.memory.length === 0) out.memory = new Uint8Array(LINE_BYTES);
    out.at = 0;
    return out;
  }

  #namesOf(entry: ServiceEntry): ServiceNames {
    const known = this.#names.get(entry);
    if (known !== undefined) return known;
    const { namespace, name, tenant, uid } = entry;
    const service = `"namespace":${JSON.stringify(namespace)},"service":${JSON.stringify(name)}`;
    const members = `","name":"access","node":${JSON.stringify(this.#node)},${service}`;
    const names = {
      members: new TextEncoder().encode(members),
      tenant: tenant ?? uid,
      service: `${namespace}/${name}`,
      refusalSecond: 0,
      refusals: 0,
    };
    this.#names.set(entry, names);
    return names;
  }
}

const LINE_START: Uint8Array = asciiBytes('{"level":"info","time":"');

interface ServiceNames {
  readonly members: Uint8Array;
  readonly tenant: string;
  readonly service: string;
  /** The last second in which a connection was refused, and the number of connections that were refused in this second. */
  refusalSecond: number;
  refusals: number;
}

function isSampled({ requestsPerMillion }: AccessLogSettings): boolean {
  return requestsPerMillion >= MILLION || Math.random() * MILLION < requestsPerMillion;
}

const MILLISECONDS_AT = '2026-01-01T00:00:00.'.length;

/** Formats times as RFC 3339 texts. Formats each second only once. */
class TimeText {
  #second = -1;
  readonly #out = new ByteWriter(new Uint8Array(MILLISECONDS_AT + 4));

  /** The bytes are valid until the next call. */
  at(now: number): Uint8Array {
    const out = this.#out;
    const second = Math.floor(now / SECOND_MS);
    if (second !== this.#second) {
      this.#second = second;
      out.at = 0;
      out.bytes(asciiBytes(new Date(second * SECOND_MS).toISOString()));
    }
    out.at = MILLISECONDS_AT;
    writeThreeDigits(out, Math.floor(now) % SECOND_MS);
    return out.memory;
  }
}
