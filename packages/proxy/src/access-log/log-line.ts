// The members of a line of the access log. The docs list them (docs/access-log.md).
import type { NetworkSet } from '@weir/model/data-plane';
import type { AnswerReason } from '../http/current-request.ts';
import { forwardedClientOf } from '../http/forwarded-client.ts';
import { FIELD, type HeadFields } from '../http/h1/head-fields.ts';
import type { RequestLine } from '../http/h1/request-line.ts';
import { asciiBytes, ByteWriter } from '../http/passes/byte-writer.ts';
import type { ForwardedPeer } from '../http/passes/forwarded.ts';
import { REQUEST_ID_BYTES } from '../http/passes/request-ids.ts';
import type { DownstreamInfo } from '../relay/downstream-info.ts';
import type { SocketAddress } from '../transport/tcp-transport.ts';
import type { LoggedRequest } from './access-log.ts';
import { writeMs, writeText } from './json-writer.ts';

const MAX_PATH_BYTES = 1_024;
const MAX_HOST_BYTES = 255;
const MAX_METHOD_BYTES = 32;
const MAX_USER_AGENT_BYTES = 256;
const MAX_REQUEST_ID_BYTES = 128;

export interface RequestToLog {
  /** Undefined if the client sent no valid head. */
  readonly head: LoggedHead | undefined;
  readonly client: LoggedClient;
  readonly id: LoggedRequestId;
  readonly isHttp2: boolean;
  /** The proxies in front of Weir, see `RelayContext`. */
  readonly trustForwarded: NetworkSet;
}

/** A parsed head of HTTP/1.1, or a head of HTTP/2 in the same form. */
export interface LoggedHead extends RequestLine {
  readonly fields: HeadFields;
}

/** The request id that the client sent and the proxy kept, or that the proxy made. */
export interface LoggedRequestId {
  readonly isRequestIdMade: boolean;
  readonly requestId: Uint8Array;
}

export interface LoggedClient {
  readonly info: DownstreamInfo;
  readonly peer: ForwardedPeer;
}

const METHOD_NAME: Uint8Array = asciiBytes('","method":');
const HOST: Uint8Array = asciiBytes(',"host":');
const PATH: Uint8Array = asciiBytes(',"path":');
const QUERY: Uint8Array = asciiBytes(',"query":');
const NO_TARGET: Uint8Array = asciiBytes('","method":null,"host":null,"path":null');

/** Writes the members from `client` to `path`, and `query` if the Service asks for query strings. */
export function writeTarget(out: ByteWriter, { head, client, trustForwarded }: RequestToLog, hasQuery: boolean): void {
  const isForwarded = head !== undefined && client.peer.isTrusted;
  const forwardedClient = isForwarded ? forwardedClientOf(head.fields, trustForwarded) : undefined;
  if (forwardedClient === undefined) out.bytes(textsOf(client).client);
  else {
    out.bytes(CLIENT);
    out.bytes(asciiBytes(forwardedClient));
  }
  if (head === undefined) {
    out.bytes(NO_TARGET);
    return;
  }
  const { bytes } = head.fields;
  out.bytes(METHOD_NAME);
  writeText(out, bytes, { start: head.methodStart, end: head.methodEnd, maxBytes: MAX_METHOD_BYTES });
  out.bytes(HOST);
  writeText(out, bytes, { start: head.hostStart, end: head.hostEnd, maxBytes: MAX_HOST_BYTES });
  out.bytes(PATH);
  writeText(out, bytes, { start: head.pathStart, end: head.pathEnd, maxBytes: MAX_PATH_BYTES });
  if (!hasQuery || head.pathEnd === head.targetEnd) return;
  out.bytes(QUERY);
  writeText(out, bytes, { start: head.pathEnd + 1, end: head.targetEnd, maxBytes: MAX_PATH_BYTES });
}

const STATUS: Uint8Array = asciiBytes(',"status":');
const REASON: Uint8Array = asciiBytes(',"reason":');
const RECEIVED_BYTES: Uint8Array = asciiBytes(',"receivedBytes":');
const SENT_BYTES: Uint8Array = asciiBytes(',"sentBytes":');
const DURATION_MS: Uint8Array = asciiBytes(',"durationMs":');
const ENDPOINT_MS: Uint8Array = asciiBytes(',"endpointMs":');
const ENDPOINT: Uint8Array = asciiBytes(',"endpoint":');
const ATTEMPTS: Uint8Array = asciiBytes(',"attempts":');
const NULL: Uint8Array = asciiBytes('null');
const QUOTE = 0x22;
const COLON = 0x3a;

/** Writes the members from `status` to `attempts`. The request ended at `now`. */
export function writeResult(out: ByteWriter, logged: LoggedRequest, now: number): void {
  const { status, request } = logged;
  const endpoint = request?.lastEndpoint?.endpoint;
  out.bytes(STATUS);
  if (status === 0) out.bytes(NULL);
  else out.decimal(status);
  out.bytes(REASON);
  writeReason(out, logged);
  out.bytes(RECEIVED_BYTES);
  out.decimal(logged.receivedBytes);
  out.bytes(SENT_BYTES);
  out.decimal(logged.sentBytes);
  out.bytes(DURATION_MS);
  writeMs(out, now - logged.startedAt);
  out.bytes(ENDPOINT_MS);
  writeMs(out, logged.endpointMs);
  out.bytes(ENDPOINT);
  if (endpoint === undefined) out.bytes(NULL);
  else writeEndpoint(out, endpoint);
  out.bytes(ATTEMPTS);
  out.decimal(request?.attempts ?? 0);
}

const ABORTED: Uint8Array = asciiBytes('"aborted"');
const SWITCHING_PROTOCOLS = 101;
const reasonTexts = new Map<AnswerReason, Uint8Array>();

/** Writes why there is no complete answer of an endpoint. `aborted`: the connection ended before the answer was complete. */
function writeReason(out: ByteWriter, { reason, isComplete, status }: LoggedRequest): void {
  if (reason === undefined) {
    out.bytes(isComplete || status === SWITCHING_PROTOCOLS ? NULL : ABORTED);
    return;
  }
  let text = reasonTexts.get(reason);
  if (text === undefined) {
    text = asciiBytes(`"${reason}"`);
    reasonTexts.set(reason, text);
  }
  out.bytes(text);
}

/** The texts of addresses of endpoints and listeners, kept as long as the endpoints and listeners exist. */
const endpointAddresses = new WeakMap<SocketAddress, Uint8Array>();

/** Writes `"ADDRESS:PORT"`. */
export function writeEndpoint(out: ByteWriter, endpoint: SocketAddress): void {
  let address = endpointAddresses.get(endpoint);
  if (address === undefined) {
    address = asciiBytes(endpoint.address.includes(':') ? `[${endpoint.address}]` : endpoint.address);
    endpointAddresses.set(endpoint, address);
  }
  out.byte(QUOTE);
  out.bytes(address);
  out.byte(COLON);
  out.decimal(endpoint.port);
  out.byte(QUOTE);
}

const REQUEST_ID: Uint8Array = asciiBytes(',"requestId":');
const PROTOCOLS: readonly Uint8Array[] = [
  asciiBytes(',"protocol":"HTTP/1.0","tls":'),
  asciiBytes(',"protocol":"HTTP/1.1","tls":'),
];
const HTTP2: Uint8Array = asciiBytes(',"protocol":"HTTP/2","tls":');
const NO_PROTOCOL: Uint8Array = asciiBytes(',"protocol":null,"tls":');
const USER_AGENT_MEMBER: Uint8Array = asciiBytes(',"userAgent":');
const LINE_END: Uint8Array = asciiBytes('}\n');

/** Writes the members from `requestId` to the end of the line. */
export function writeDetails(out: ByteWriter, { head, client, id, isHttp2 }: RequestToLog): void {
  out.bytes(REQUEST_ID);
  if (head === undefined) out.bytes(NULL);
  else if (id.isRequestIdMade) {
    out.byte(QUOTE);
    out.hex(id.requestId, REQUEST_ID_BYTES);
    out.byte(QUOTE);
  } else writeValue(out, head.fields, head.fields.indexOf(FIELD.xRequestId), MAX_REQUEST_ID_BYTES);
  if (isHttp2) out.bytes(HTTP2);
  else out.bytes(head === undefined ? NO_PROTOCOL : (PROTOCOLS[head.minorVersion] as Uint8Array));
  out.bytes(textsOf(client).tls);
  out.bytes(USER_AGENT_MEMBER);
  if (head === undefined) out.bytes(NULL);
  else writeValue(out, head.fields, indexOfUserAgent(head.fields), MAX_USER_AGENT_BYTES);
  out.bytes(LINE_END);
}

/** Writes the value of a field, or null if `index` is negative. */
function writeValue(
  out: ByteWriter,
  { bytes, valueStart, valueEnd }: HeadFields,
  index: number,
  maxBytes: number,
): void {
  if (index < 0) out.bytes(NULL);
  else writeText(out, bytes, { start: valueStart[index] as number, end: valueEnd[index] as number, maxBytes });
}

const USER_AGENT: Uint8Array = asciiBytes('user-agent');
const LOWER_CASE_BIT = 0x20;

/** Returns the index of the first User-Agent, or -1. */
function indexOfUserAgent({ bytes, count, ids, nameStart, nameEnd }: HeadFields): number {
  for (let index = 0; index < count; index += 1) {
    const start = nameStart[index] as number;
    if (ids[index] !== FIELD.other || (nameEnd[index] as number) - start !== USER_AGENT.length) continue;
    let same = 0;
    // The name is a token, whose `-` has the bit of lower case too.
    while (same < USER_AGENT.length && ((bytes[start + same] as number) | LOWER_CASE_BIT) === USER_AGENT[same])
      same += 1;
    if (same === USER_AGENT.length) return index;
  }
  return -1;
}

interface ConnectionTexts {
  /** The beginning of the member `client`, without the quote at the end. */
  readonly client: Uint8Array;
  /** The value of the member `tls`. */
  readonly tls: Uint8Array;
}

/** The texts of each connection with a logged request. */
const textsByConnection = new WeakMap<DownstreamInfo, ConnectionTexts>();

function textsOf({ info, peer }: LoggedClient): ConnectionTexts {
  const known = textsByConnection.get(info);
  if (known !== undefined) return known;
  const texts = { client: Buffer.concat([CLIENT, Buffer.from(peer.address, 'latin1')]), tls: tlsText(info) };
  textsByConnection.set(info, texts);
  return texts;
}

const CLIENT: Uint8Array = asciiBytes(',"client":"');
const END_OF_OBJECT = 0x7d;

/** Returns the value of the member `tls`. The version is null if the client's TLS does not end at this proxy. */
export function tlsText({
  tls,
  hasClientHello,
  serverName,
}: Pick<DownstreamInfo, 'tls' | 'hasClientHello' | 'serverName'>): Uint8Array {
  if (tls === undefined && !hasClientHello) return NULL;
  const name = new TextEncoder().encode(serverName ?? '');
  const out = new ByteWriter(new Uint8Array(MAX_HOST_BYTES * 6 + 100));
  out.bytes(asciiBytes(`{"version":${JSON.stringify(tls?.version ?? null)},"serverName":`));
  if (serverName === null) out.bytes(NULL);
  else writeText(out, name, { start: 0, end: name.length, maxBytes: MAX_HOST_BYTES });
  out.byte(END_OF_OBJECT);
  return out.memory.slice(0, out.at);
}
