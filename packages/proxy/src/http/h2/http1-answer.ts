import { output } from '../worker-memory.ts';
import type { Http2Connection } from './connection.ts';
import { encodeLines } from './head-encoder.ts';
import type { Http2Stream } from './stream.ts';

const NO_BYTES: Uint8Array = new Uint8Array(0);
const CR = 0x0d;
const LF = 0x0a;
/** Where the status is in a status line (RFC 9112 §4). */
const STATUS_START = 9;
const STATUS_END = 12;

/** Sends the HTTP/1.1 answer in the output as an HTTP/2 answer, and clears the output. */
export function sendOutput(connection: Http2Connection, stream: Http2Stream): void {
  const { memory, at: end } = output;
  output.at = 0;
  sendAnswer(connection, stream, memory.subarray(0, end));
}

/** Sends a complete HTTP/1.1 answer as an HTTP/2 answer. */
export function sendAnswer(connection: Http2Connection, stream: Http2Stream, memory: Uint8Array): void {
  const end = memory.length;
  const fieldsStart = memory.indexOf(LF) + 1;
  let bodyStart = fieldsStart;
  while (memory[bodyStart] !== CR) bodyStart = memory.indexOf(LF, bodyStart) + 1;
  const encoder = connection.beginHead();
  encoder.status(Number(Buffer.from(memory.subarray(STATUS_START, STATUS_END)).toString('latin1')));
  encodeLines(encoder, memory, { start: fieldsStart, end: bodyStart, kind: 'response' });
  const body = bodyStart + 2 < end ? memory.subarray(bodyStart + 2, end) : NO_BYTES;
  connection.sendHead(stream, body.length === 0);
  if (body.length > 0) connection.sendData(stream, body, 0, body.length, true);
}
