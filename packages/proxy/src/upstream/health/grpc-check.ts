import { once } from 'node:events';
import type { Socket } from 'node:net';
import { TLSSocket } from 'node:tls';
import type { HeadFields } from '../../http/h1/head-fields.ts';
import { METHOD } from '../../http/h1/methods.ts';
import { Http2Connection } from '../../http/h2/connection.ts';
import type { ConnectionHandler } from '../../http/h2/connection-handler.ts';
import type { DecodedHead } from '../../http/h2/decoded-head.ts';
import { ERROR } from '../../http/h2/protocol.ts';
import type { Http2Stream, StreamConsumer } from '../../http/h2/stream.ts';
import { asciiBytes } from '../../http/passes/byte-writer.ts';
import {
  closeCheckSocket,
  connectForCheck,
  failed,
  failedWith,
  type HealthCheckResult,
  type WantedCheck,
} from './check.ts';
import { healthRequest, healthResultOf } from './grpc-health.ts';
import { connectTlsForCheck } from './tls-connection.ts';

/** The maximum size of the response message, which has two bytes in practice. */
const MAX_MESSAGE_BYTES = 1_024;
/** The maximum number of bytes that are read in one check. */
const MAX_RESPONSE_BYTES = 196_608;
const PATH = '/grpc.health.v1.Health/Check';
const GRPC_TYPE = /^application\/grpc(?:$|[+; ])/i;
/** The first bytes with which an HTTP/1.1 server answers the preface of HTTP/2. */
const HTTP1 = 'HTTP/1';

/**
 * Calls `grpc.health.v1.Health/Check` over HTTP/2. Passes if the endpoint answers with the status SERVING. Rejects if the
 * connection fails or the signal is aborted before the connection exists. The certificate is not verified.
 */
export async function checkGrpc(wanted: WantedCheck, service: string, signal: AbortSignal): Promise<HealthCheckResult> {
  const socket = wanted.overTls ? connectTlsForCheck(wanted, 'h2') : connectForCheck(wanted);
  try {
    await once(socket, wanted.overTls ? 'secureConnect' : 'connect', { signal });
    // RFC 9113 §3.2: HTTP/2 over TLS is negotiated by ALPN.
    if (socket instanceof TLSSocket && socket.alpnProtocol !== 'h2') return failed('no HTTP/2: ALPN did not choose h2');
    signal.addEventListener('abort', () => close(socket), { once: true });
    const call = new HealthCall(socket);
    call.start(wanted, service);
    return await call.result;
  } finally {
    close(socket);
  }
}

function close(socket: Socket): void {
  if (socket instanceof TLSSocket) socket.destroy();
  else closeCheckSocket(socket);
}

/** One call over a connection of its own. */
class HealthCall implements ConnectionHandler, StreamConsumer {
  readonly result: Promise<HealthCheckResult>;
  readonly #end: (result: HealthCheckResult) => void;
  readonly #socket: Socket;
  readonly #connection: Http2Connection;
  readonly #message: Uint8Array = new Uint8Array(MAX_MESSAGE_BYTES);
  #messageBytes = 0;
  #grpcStatus: string | undefined;

  constructor(socket: Socket) {
    const { promise, resolve } = Promise.withResolvers<HealthCheckResult>();
    this.result = promise;
    this.#end = resolve;
    this.#socket = socket;
    this.#connection = new Http2Connection({
      role: 'client',
      now: () => performance.now(),
      sink: { write: (bytes) => (socket.write(Uint8Array.from(bytes)) ? 0 : socket.writableLength) },
      handler: this,
    });
    socket.on('drain', () => this.#connection.onSinkDrained());
    socket.on('data', (bytes: Uint8Array) => this.#receive(bytes));
    socket.on('error', (error) => resolve(failedWith(error)));
    socket.on('close', () => resolve(failed('the endpoint closed the connection without an answer')));
  }

  start({ endpoint, host, overTls, check }: WantedCheck, service: string): void {
    const connection = this.#connection;
    connection.start();
    const { address, port } = endpoint;
    const encoder = connection.beginHead();
    const fields = {
      ':method': 'POST',
      ':scheme': overTls ? 'https' : 'http',
      ':path': PATH,
      ':authority': `${host ?? (address.includes(':') ? `[${address}]` : address)}:${port}`,
      te: 'trailers',
      'content-type': 'application/grpc',
      'grpc-timeout': `${check.timeoutMs}m`,
      'user-agent': 'weir-health-check',
    };
    for (const [name, value] of Object.entries(fields)) {
      encoder.field(asciiBytes(name + value), 0, name.length, name.length, name.length + value.length);
    }
    const stream = connection.open(this, METHOD.post, false);
    const request = healthRequest(service);
    connection.sendData(stream, request, 0, request.length, true);
    connection.flush();
  }

  // The events of the stream.

  onResponse(_stream: Http2Stream, { status, fields }: DecodedHead): void {
    if (status < 200) return;
    if (status !== 200) this.#end(failed(`status ${status}`));
    else if (!GRPC_TYPE.test(fieldValue(fields, 'content-type') ?? '')) this.#end(failed('an answer that is not gRPC'));
    else this.#grpcStatus = fieldValue(fields, 'grpc-status');
  }

  onData(_stream: Http2Stream, bytes: Uint8Array, start: number, end: number): void {
    const messageBytes = this.#messageBytes + end - start;
    if (messageBytes > MAX_MESSAGE_BYTES) {
      this.#end(failed(`an answer of more than ${MAX_MESSAGE_BYTES} bytes`));
      return;
    }
    this.#message.set(bytes.subarray(start, end), this.#messageBytes);
    this.#messageBytes = messageBytes;
  }

  onTrailers(_stream: Http2Stream, trailers: HeadFields): void {
    this.#grpcStatus = fieldValue(trailers, 'grpc-status');
  }

  onEnd(): void {
    this.#end(healthResultOf(this.#grpcStatus, this.#message.subarray(0, this.#messageBytes)));
  }

  onDrain(): void {}

  onClose(_stream: Http2Stream, code: number | undefined): void {
    this.#end(failed(`HTTP/2 error ${errorName(code)}`));
  }

  // The events of the connection. If the connection fails, the stream gets an event too (`onClose`).

  onRequest(): StreamConsumer {
    throw new Error('an HTTP/2 client received a request');
  }

  onCapacity(): void {}

  onDrained(): void {}

  onFailure(): void {}

  #receive(bytes: Uint8Array): void {
    const socket = this.#socket;
    if (socket.bytesRead === bytes.length && Buffer.from(bytes.subarray(0, HTTP1.length)).toString() === HTTP1)
      this.#end(failed('an answer of HTTP/1 instead of HTTP/2'));
    else if (socket.bytesRead > MAX_RESPONSE_BYTES)
      this.#end(failed(`an answer of more than ${MAX_RESPONSE_BYTES} bytes`));
    else this.#connection.receive(bytes);
  }
}

/** Returns the value of the only field with this name, or undefined. */
function fieldValue(fields: HeadFields, name: string): string | undefined {
  let found: string | undefined;
  for (let index = 0; index < fields.count; index += 1) {
    if (fields.nameText(index).toLowerCase() !== name) continue;
    if (found !== undefined) return undefined;
    found = fields.valueText(index);
  }
  return found;
}

/** Returns the code of an error of HTTP/2 as a person writes it, such as `FRAME_SIZE`. */
function errorName(code: number | undefined): string {
  const [name] = Object.entries(ERROR).find(([, value]) => value === code) ?? [];
  return name?.replace(/[A-Z]/g, (letter) => `_${letter}`).toUpperCase() ?? `${code}`;
}
