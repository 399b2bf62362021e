// Tells endpoints who the client is: X-Forwarded-For, -Proto, -Host and -Port, and Forwarded (RFC 7239).
import type { SocketAddress } from '../../transport/tcp-transport.ts';
import { FIELD } from '../h1/head-fields.ts';
import { asciiBytes, type ByteWriter } from './byte-writer.ts';
import { isValue } from './connection-options.ts';
import type { HeadEdit } from './head-edit.ts';
import type { RequestContext, RequestHead } from './request-context.ts';

/** Describes the connection of a peer, and whether the operator trusts the peer. */
export interface PeerOptions {
  /** An IPv4 or IPv6 address without a zone. */
  readonly address: string;
  /** The address and port to which the peer has connected. */
  readonly listener: SocketAddress;
  readonly isTls: boolean;
  /** Whether a range of proxies that the operator trusts contains the peer. The fields of other peers are replaced. */
  readonly isTrusted: boolean;
  /** Whether the operator wants Forwarded (RFC 7239) beside X-Forwarded-For. */
  readonly writesForwarded: boolean;
}

/** The peer at the other end of a client's connection. The X-Forwarded fields describe this peer to endpoints. */
export class ForwardedPeer {
  /** The text of the peer's address. */
  readonly address: string;
  readonly listener: SocketAddress;
  readonly isTls: boolean;
  readonly isTrusted: boolean;
  /** The element of Forwarded without `host`. Undefined if no Forwarded is written. */
  readonly element: Uint8Array | undefined;

  constructor({ address, listener, isTls, isTrusted, writesForwarded }: PeerOptions) {
    this.address = address;
    this.listener = listener;
    this.isTls = isTls;
    this.isTrusted = isTrusted;
    this.element = writesForwarded ? elementFor(address, isTls) : undefined;
  }

  get protoLine(): Uint8Array {
    return this.isTls ? HTTPS_LINE : HTTP_LINE;
  }
}

function elementFor(address: string, isTls: boolean): Uint8Array {
  // RFC 7239 §6: an IPv6 address is written in brackets, and so needs quotes.
  const node = address.includes(':') ? `"[${address}]"` : address;
  return asciiBytes(`for=${node};proto=${isTls ? 'https' : 'http'}`);
}

const FOR_PREFIX: Uint8Array = asciiBytes('X-Forwarded-For: ');
const HTTP_LINE: Uint8Array = asciiBytes('X-Forwarded-Proto: http\r\n');
const HTTPS_LINE: Uint8Array = asciiBytes('X-Forwarded-Proto: https\r\n');
const PORT_PREFIX: Uint8Array = asciiBytes('X-Forwarded-Port: ');
const HOST_PREFIX: Uint8Array = asciiBytes('X-Forwarded-Host: ');
const FORWARDED_PREFIX: Uint8Array = asciiBytes('Forwarded: ');
const HOST_PARAMETER: Uint8Array = asciiBytes(';host="');
const SEPARATOR: Uint8Array = asciiBytes(', ');
const CRLF: Uint8Array = asciiBytes('\r\n');
const HTTPS: Uint8Array = asciiBytes('https');
const QUOTE = 0x22;

/**
 * Writes X-Forwarded-For, -Proto, -Host and -Port. The fields of an untrusted client are replaced. If the peer is
 * trusted, its address is appended to the received X-Forwarded-For, and the other received fields are kept.
 */
export function writeXForwarded(edit: HeadEdit, context: RequestContext): void {
  const { head, peer } = context;
  const { appended } = edit;
  context.isHttps = peer.isTls;
  if (!peer.isTrusted) {
    edit.drop(FIELD.xForwardedFor);
    edit.drop(FIELD.xForwardedProto);
    edit.drop(FIELD.xForwardedHost);
    edit.drop(FIELD.xForwardedPort);
    appended.bytes(FOR_PREFIX);
    appended.ascii(peer.address);
    appended.bytes(CRLF);
    appended.bytes(peer.protoLine);
    writePort(appended, peer);
    writeXForwardedHost(edit, head);
    return;
  }
  // One line, because many endpoints read only the first line of a list field.
  appended.bytes(FOR_PREFIX);
  joinValues(edit, FIELD.xForwardedFor);
  appended.ascii(peer.address);
  appended.bytes(CRLF);
  if (edit.countOf(FIELD.xForwardedProto) === 0) {
    appended.bytes(peer.protoLine);
    // The port of this listener would be wrong beside the scheme of another listener.
    if (edit.countOf(FIELD.xForwardedPort) === 0) writePort(appended, peer);
  } else {
    // Proxies that append to the field do not agree about the order, so only a single value is clear.
    context.isHttps =
      edit.countOf(FIELD.xForwardedProto) === 1 && isValue(edit, edit.firstOf(FIELD.xForwardedProto), HTTPS);
  }
  if (edit.countOf(FIELD.xForwardedHost) === 0) writeXForwardedHost(edit, head);
}

/**
 * Drops the Forwarded (RFC 7239) of an untrusted client, and keeps the Forwarded of a trusted peer. Appends the peer's
 * element if the operator wants Forwarded.
 */
export function writeForwarded(edit: HeadEdit, { head, peer }: RequestContext): void {
  if (!peer.isTrusted) edit.drop(FIELD.forwarded);
  if (peer.element === undefined) return;
  const { appended } = edit;
  appended.bytes(FORWARDED_PREFIX);
  if (peer.isTrusted) joinValues(edit, FIELD.forwarded);
  appended.bytes(peer.element);
  if (head.hostStart < head.hostEnd) appendHostParameter(edit, head);
  appended.bytes(CRLF);
}

function writePort(writer: ByteWriter, { listener }: ForwardedPeer): void {
  writer.bytes(PORT_PREFIX);
  writer.decimal(listener.port);
  writer.bytes(CRLF);
}

/** Appends the host that the client asked for, with its port. */
function writeXForwardedHost({ appended }: HeadEdit, head: RequestHead): void {
  if (head.hostStart === head.hostEnd) return;
  appended.bytes(HOST_PREFIX);
  appended.range(head.fields.bytes, head.hostStart, authorityEndOf(head));
  appended.bytes(CRLF);
}

/** Appends `host` as a quoted string (RFC 7239 §4), because a host with a port contains a colon. */
function appendHostParameter({ appended }: HeadEdit, head: RequestHead): void {
  appended.bytes(HOST_PARAMETER);
  // The parser accepts no quote and no backslash in a host.
  appended.range(head.fields.bytes, head.hostStart, authorityEndOf(head));
  appended.byte(QUOTE);
}

/** Returns the end of the authority whose host the parser found: in the target, or the value of Host. */
function authorityEndOf({ fields, targetForm, pathStart }: RequestHead): number {
  return targetForm === 'absolute' ? pathStart : (fields.valueEnd[fields.indexOf(FIELD.host)] as number);
}

/** Drops all fields of this id and appends their values as one list that ends with a separator. */
function joinValues(edit: HeadEdit, id: number): void {
  const { ids, count, valueStart, valueEnd } = edit.fields;
  edit.drop(id);
  for (let index = 0; index < count; index += 1) {
    if (ids[index] !== id || valueStart[index] === valueEnd[index]) continue;
    edit.appendValue(index);
    edit.appended.bytes(SEPARATOR);
  }
}
