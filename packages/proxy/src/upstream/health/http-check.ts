import { constants } from 'node:crypto';
import { once } from 'node:events';
import type { Socket } from 'node:net';
import { connect, DEFAULT_CIPHERS, TLSSocket } from 'node:tls';
import type { HttpHealthCheck } from '@weir/model/data-plane';
import { Client } from 'undici';
import { tlsSocketInternals } from '../../transport/tls/node-tls.ts';
import type { WantedCheck } from './check.ts';
import { type CheckResult, closeCheckSocket, connectForCheck, failed, PASSED } from './check.ts';

const MAX_HEAD_BYTES = 16_384;
/** A body is read so that the endpoint can end its answer, but not for ever. */
const MAX_BODY_BYTES = 65_536;
/** Of all that is read: interim answers (RFC 9110 §15.2), blank lines and what stands between chunks have no end of their own. */
const MAX_RESPONSE_BYTES = 196_608;
const HEADERS = { 'user-agent': 'weir-health-check', accept: '*/*' };
/**
 * Of what an endpoint may ask for by TLS 1.2, without what takes the main thread long: groups of its own choice, of many thousands of
 * bits, and one handshake after another.
 */
const CHEAP_TLS_OPTIONS = { ciphers: `${DEFAULT_CIPHERS}:!DHE`, secureOptions: constants.SSL_OP_NO_RENEGOTIATION };

/**
 * Good: GET is answered with a status from 200 to 399. Rejects when it is not answered in HTTP, or is stopped. Over TLS the
 * certificate is not verified: what answers may be anybody, and nothing but the question is said to it.
 */
export async function checkHttp(
  wanted: WantedCheck,
  { path, overTls }: HttpHealthCheck,
  signal: AbortSignal,
): Promise<CheckResult> {
  const socket = overTls ? connectTlsForCheck(wanted) : connectForCheck(wanted);
  let client: Client | undefined;
  try {
    // Not left to the client: it does not give up a connection that is still being made when it is told to stop.
    await once(socket, overTls ? 'secureConnect' : 'connect', { signal });
    limitBytes(socket);
    client = clientOver(socket, originOf(wanted, overTls ? 'https' : 'http'));
    const answer = await client.request({ method: 'GET', path, headers: HEADERS, signal, reset: true });
    const { statusCode, body } = answer;
    await body.dump({ limit: MAX_BODY_BYTES, signal }).catch((error: unknown) => {
      // Its status is known.
      if (!exceedsLimit(socket)) throw error;
    });
    return statusCode >= 200 && statusCode < 400 ? PASSED : failed(`status ${statusCode}`);
  } finally {
    if (socket instanceof TLSSocket) socket.destroy();
    else closeCheckSocket(socket);
    client?.destroy().catch(() => undefined);
  }
}

/** An address is no server name (RFC 6066 §3): who has no host is asked without one. */
function connectTlsForCheck(wanted: WantedCheck): TLSSocket {
  const socket = connectForCheck(wanted);
  tlsSocketInternals.resetWhenClosed(socket);
  const options = { socket, rejectUnauthorized: false, ALPNProtocols: ['http/1.1'], ...CHEAP_TLS_OPTIONS };
  const { host } = wanted;
  return connect(host === null ? options : { ...options, servername: host }).on('error', () => undefined);
}

/** Before anybody else reads from it. */
function limitBytes(socket: Socket): void {
  socket.on('readable', () => {
    if (exceedsLimit(socket)) socket.destroy(new Error(`an answer of more than ${MAX_RESPONSE_BYTES} bytes`));
  });
}

const exceedsLimit = ({ bytesRead }: Socket): boolean => bytesRead > MAX_RESPONSE_BYTES;

function clientOver(socket: Socket, origin: string): Client {
  return new Client(origin, {
    // The time is the caller's signal.
    headersTimeout: 0,
    bodyTimeout: 0,
    maxHeaderSize: MAX_HEAD_BYTES,
    connect: (_options, callback) => setImmediate(callback, null, socket),
  });
}

function originOf({ endpoint: { address, port }, host }: WantedCheck, scheme: 'http' | 'https'): string {
  return `${scheme}://${host ?? (address.includes(':') ? `[${address}]` : address)}:${port}`;
}
