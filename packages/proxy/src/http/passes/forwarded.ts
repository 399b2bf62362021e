// Tells endpoints who the client is: X-Forwarded-For, -Proto, -Host and -Port, and Forwarded (RFC 7239).
import type { SocketAddress } from '../../transport/tcp-transport.ts';
import { FIELD } from '../h1/head-fields.ts';
import { asciiBytes } from './byte-writer.ts';
import type { HeadEdit } from './head-edit.ts';
import type { RequestContext, RequestHead } from './request-context.ts';

/** What a peer's connection is, and whether the operator believes the peer. */
export interface PeerOptions {
  /** An IPv4 or IPv6 address without a zone. */
  readonly address: string;
  /** The address and port to which the peer has connected. */
  readonly listener: SocketAddress;
  readonly isTls: boolean;
  /** Whether the operator has named a range of proxies that contains the peer. Only then the peer's fields are believed. */
  readonly isTrusted: boolean;
}

/** The peer of a client's connection and what endpoints are told about the peer, built once per connection. */
export class ForwardedPeer {
  readonly listener: SocketAddress;
  readonly isTls: boolean;
  readonly isTrusted: boolean;
  /** X-Forwarded-For, -Proto and -Port as three lines. */
  readonly lines: Uint8Array;
  readonly #address: string;

  constructor({ address, listener, isTls, isTrusted }: PeerOptions) {
    this.listener = listener;
    this.isTls = isTls;
    this.isTrusted = isTrusted;
    this.#address = address;
    this.lines = Buffer.from(`${FOR_NAME}${address}\r\n${this.#protoLine}${this.#portLine}`, 'latin1');
  }

  /** The text of the peer's address. */
  get address(): Uint8Array {
    return asciiBytes(this.#address);
  }

  get forLine(): Uint8Array {
    return asciiBytes(`${FOR_NAME}${this.#address}\r\n`);
  }

  get protoLine(): Uint8Array {
    return asciiBytes(this.#protoLine);
  }

  get portLine(): Uint8Array {
    return asciiBytes(this.#portLine);
  }

  /** The element of Forwarded without `host`. */
  get element(): Uint8Array {
    const address = this.#address;
    // RFC 7239 §6: an IPv6 address is written in brackets, and so needs quotes.
    const node = address.includes(':') ? `"[${address}]"` : address;
    return asciiBytes(`for=${node};proto=${this.isTls ? 'https' : 'http'}`);
  }

  get #protoLine(): string {
    return this.isTls ? 'X-Forwarded-Proto: https\r\n' : 'X-Forwarded-Proto: http\r\n';
  }

  get #portLine(): string {
    return `X-Forwarded-Port: ${this.listener.port}\r\n`;
  }
}

const FOR_NAME = 'X-Forwarded-For: ';
const FOR_PREFIX: Uint8Array = asciiBytes(FOR_NAME);
const HOST_PREFIX: Uint8Array = asciiBytes('X-Forwarded-Host: ');
const FORWARDED_PREFIX: Uint8Array = asciiBytes('Forwarded: ');
const HOST_PARAMETER: Uint8Array = asciiBytes(';host="');
const SEPARATOR: Uint8Array = asciiBytes(', ');
const CRLF: Uint8Array = asciiBytes('\r\n');
const QUOTE = 0x22;

/**
 * Writes X-Forwarded-For, -Proto, -Host and -Port. The fields of an untrusted client are replaced. If the peer is
 * trusted, its address is appended to the received X-Forwarded-For, and the other received fields are kept.
 */
export function writeXForwarded(edit: HeadEdit, { head, peer }: RequestContext): void {
  const { appended } = edit;
  if (!peer.isTrusted) {
    edit.drop(FIELD.xForwardedFor);
    edit.drop(FIELD.xForwardedProto);
    edit.drop(FIELD.xForwardedHost);
    edit.drop(FIELD.xForwardedPort);
    appended.bytes(peer.lines);
    writeXForwardedHost(edit, head);
    return;
  }
  if (edit.countOf(FIELD.xForwardedFor) === 0) appended.bytes(peer.forLine);
  else {
    // One line, because many endpoints read only the first line of a list field.
    appended.bytes(FOR_PREFIX);
    joinValues(edit, FIELD.xForwardedFor);
    appended.bytes(peer.address);
    appended.bytes(CRLF);
  }
  if (edit.countOf(FIELD.xForwardedProto) === 0) {
    appended.bytes(peer.protoLine);
    // The port of this listener would be wrong beside the scheme of another listener.
    if (edit.countOf(FIELD.xForwardedPort) === 0) appended.bytes(peer.portLine);
  }
  if (edit.countOf(FIELD.xForwardedHost) === 0) writeXForwardedHost(edit, head);
}

/**
 * Writes Forwarded (RFC 7239) if the operator asks for the field. The field of an untrusted client is dropped in any
 * case. The field of a trusted peer is kept, and the peer's element is appended if the operator asks for the field.
 */
export function writeForwarded(edit: HeadEdit, { head, peer, writesForwarded }: RequestContext): void {
  if (!peer.isTrusted) edit.drop(FIELD.forwarded);
  if (!writesForwarded) return;
  const { appended } = edit;
  appended.bytes(FORWARDED_PREFIX);
  if (peer.isTrusted) joinValues(edit, FIELD.forwarded);
  appended.bytes(peer.element);
  if (head.hostStart < head.hostEnd) appendHostParameter(edit, head);
  appended.bytes(CRLF);
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
