// Writes the head that a peer receives: the start line, the kept fields of the received head, the appended lines.
import type { HeadFields } from '../h1/head-fields.ts';
import { METHOD } from '../h1/methods.ts';
import { asciiBytes, type ByteWriter } from './byte-writer.ts';
import type { HeadEdit } from './head-edit.ts';
import type { RequestHead } from './request-context.ts';
import type { ResponseHead } from './response-passes.ts';

const SPACE = 0x20;
const ASTERISK = 0x2a;
const SLASH = 0x2f;
const LF = 0x0a;
const DIGIT_ONE = 0x31;
const CRLF: Uint8Array = asciiBytes('\r\n');
const REQUEST_LINE_END: Uint8Array = asciiBytes(' HTTP/1.1\r\n');
const STATUS_LINE_START: Uint8Array = asciiBytes('HTTP/1.1 ');
const HOST_PREFIX: Uint8Array = asciiBytes('Host: ');
/** The offset of the minor version in ` HTTP/1.1` and in `HTTP/1.1`. */
const REQUEST_MINOR_OFFSET = 8;
const STATUS_MINOR_OFFSET = 7;
/** The length of `HTTP/1.1 200 `. */
const STATUS_LINE_BYTES = 13;

/**
 * Writes a request head after the passes and returns the position after the head. Returns -1 if the memory of the writer
 * or of the edit is too small. The version is always HTTP/1.1, and the target is always in origin-form or `*`. Kept fields
 * that follow each other are copied as one block, so an unchanged head costs one copy.
 */
export function writeRequestHead(writer: ByteWriter, edit: HeadEdit, head: RequestHead): number {
  const { bytes } = head.fields;
  const fieldsStart = head.targetEnd + REQUEST_LINE_END.length;
  if (edit.target === undefined && head.targetForm !== 'absolute') {
    // RFC 9110 §2.5: a proxy sends its own version, whichever version it received.
    const minorAt = writer.at + head.targetEnd - head.methodStart + REQUEST_MINOR_OFFSET;
    writeFields(writer, edit, { blockStart: head.methodStart, fieldsStart });
    if (writer.at >= 0) writer.memory[minorAt] = DIGIT_ONE;
    return writer.at;
  }
  writer.range(bytes, head.methodStart, head.methodEnd);
  writer.byte(SPACE);
  if (edit.target !== undefined) writer.bytes(edit.target);
  // RFC 9112 §3.2.4: OPTIONS with neither path nor query is sent in asterisk-form.
  else if (head.methodId === METHOD.options && head.pathStart === head.targetEnd) writer.byte(ASTERISK);
  else {
    // RFC 9112 §3.2.1: an endpoint gets the origin-form, in which an empty path is `/`.
    if (bytes[head.pathStart] !== SLASH) writer.byte(SLASH);
    writer.range(bytes, head.pathStart, head.targetEnd);
  }
  writer.bytes(REQUEST_LINE_END);
  writeFields(writer, edit, { blockStart: fieldsStart, fieldsStart });
  return writer.at;
}

/** Writes a response head after the passes, as `writeRequestHead` writes a request head. */
export function writeResponseHead(writer: ByteWriter, edit: HeadEdit, head: ResponseHead): number {
  const fieldsStart = head.reasonEnd + CRLF.length;
  if (head.fields.bytes[head.reasonStart - 1] === SPACE) {
    // RFC 9110 §2.5: a proxy sends its own version, whichever version it received.
    const minorAt = writer.at + STATUS_MINOR_OFFSET;
    writeFields(writer, edit, { blockStart: head.reasonStart - STATUS_LINE_BYTES, fieldsStart });
    if (writer.at >= 0) writer.memory[minorAt] = DIGIT_ONE;
    return writer.at;
  }
  // RFC 9112 §4: a space follows the status. The parser also accepts a status line that ends with the status.
  writer.bytes(STATUS_LINE_START);
  writer.decimal(head.status);
  writer.byte(SPACE);
  writeFields(writer, edit, { blockStart: head.reasonEnd, fieldsStart });
  return writer.at;
}

/** Writes the bytes from `blockStart`, the kept fields, the appended lines and the empty line. */
function writeFields(
  writer: ByteWriter,
  edit: HeadEdit,
  { blockStart, fieldsStart }: { readonly blockStart: number; readonly fieldsStart: number },
): void {
  const { fields, dropped, host, appended } = edit;
  const { bytes, count, nameStart } = fields;
  let start = blockStart;
  if (host !== undefined) {
    // RFC 9110 §7.2: Host is sent as the first field.
    writer.range(bytes, start, fieldsStart);
    start = fieldsStart;
    writer.bytes(HOST_PREFIX);
    writer.range(host, edit.hostStart, edit.hostEnd);
    writer.bytes(CRLF);
  }
  for (let index = 0; index < count; index += 1) {
    if (dropped[index] === 0) continue;
    const lineStart = nameStart[index] as number;
    if (start < lineStart) writer.range(bytes, start, lineStart);
    start = lineEndOf(fields, index);
  }
  const end = count === 0 ? fieldsStart : lineEndOf(fields, count - 1);
  if (start < end) writer.range(bytes, start, end);
  if (appended.at < 0) writer.at = -1;
  else writer.range(appended.memory, 0, appended.at);
  writer.bytes(CRLF);
}

/** Returns the position after the CRLF of a field line. The parser accepts no bare LF and no folded line. */
function lineEndOf(fields: HeadFields, index: number): number {
  if (index + 1 < fields.count) return fields.nameStart[index + 1] as number;
  let at = fields.valueEnd[index] as number;
  while (fields.bytes[at] !== LF) at += 1;
  return at + 1;
}
