// Fields that the proxy writes into requests and into responses.
import type { BodyKind } from '../h1/body-framing.ts';
import { FIELD } from '../h1/head-fields.ts';
import { asciiBytes } from './byte-writer.ts';
import type { HeadEdit } from './head-edit.ts';

/** The only protocol to which the proxy lets a connection upgrade. */
export const WEBSOCKET: Uint8Array = asciiBytes('websocket');

const VIA_1_0: Uint8Array = asciiBytes('Via: 1.0 weir\r\n');
const VIA_1_1: Uint8Array = asciiBytes('Via: 1.1 weir\r\n');
const VIA_2: Uint8Array = asciiBytes('Via: 2 weir\r\n');
const UPGRADE_LINES: Uint8Array = asciiBytes('Connection: Upgrade\r\nUpgrade: websocket\r\n');
const CONTENT_LENGTH_PREFIX: Uint8Array = asciiBytes('Content-Length: ');
const CHUNKED_LINE: Uint8Array = asciiBytes('Transfer-Encoding: chunked\r\n');
const CRLF: Uint8Array = asciiBytes('\r\n');

/** Appends this proxy to Via. RFC 9110 §7.6.3: the version is the one in which the proxy received the message. */
export function appendVia(
  { appended }: HeadEdit,
  { majorVersion, minorVersion }: { readonly majorVersion: number; readonly minorVersion: number },
): void {
  appended.bytes(majorVersion === 2 ? VIA_2 : minorVersion === 0 ? VIA_1_0 : VIA_1_1);
}

/** Appends the fields that ask for a WebSocket, or agree to a WebSocket. */
export function appendUpgrade({ appended }: HeadEdit): void {
  // RFC 9110 §7.8: a sender of Upgrade also sends the option Upgrade in Connection.
  appended.bytes(UPGRADE_LINES);
}

/**
 * Drops the received framing fields and appends the one that `kind` needs. `length` is the length of the body in bytes if
 * the kind is `length`. RFC 9112 §6.2: a message never has both Content-Length and Transfer-Encoding.
 */
export function replaceFraming(edit: HeadEdit, kind: BodyKind, length: number): void {
  edit.drop(FIELD.contentLength);
  edit.drop(FIELD.transferEncoding);
  const { appended } = edit;
  if (kind === 'chunked') {
    appended.bytes(CHUNKED_LINE);
    return;
  }
  // RFC 9110 §6.6.2: Trailer announces trailer fields. Only a chunked body can have them.
  edit.drop(FIELD.trailer);
  if (kind !== 'length') return;
  appended.bytes(CONTENT_LENGTH_PREFIX);
  appended.decimal(length);
  appended.bytes(CRLF);
}
