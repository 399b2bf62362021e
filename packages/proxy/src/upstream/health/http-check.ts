import { once } from 'node:events';
import type { Socket } from 'node:net';
import { TLSSocket } from 'node:tls';
import type { HttpHealthCheck } from '@weir/model/data-plane';
import { Client } from 'undici';
import type { WantedCheck } from './check.ts';
import { closeCheckSocket, connectForCheck, failed, type HealthCheckResult, PASSED } from './check.ts';
import { connectTlsForCheck } from './tls-connection.ts';

const MAX_HEAD_BYTES = 16_384;
/** The maximum number of body bytes that are read. The body is read so that the endpoint can finish its response. */
const MAX_BODY_BYTES = 65_536;
/**
 * The maximum number of bytes that are read in one check. Interim responses (RFC 9110 §15.2), blank lines and chunk
 * extensions have no other limit.
 */
const MAX_RESPONSE_BYTES = 196_608;
const HEADERS = { 'user-agent': 'weir-health-check', accept: '*/*' };

/**
 * Passes if the endpoint answers a GET request with a status from 200 to 399. Rejects if the response is not valid HTTP
 * or the signal is aborted. The certificate is not verified, because the request contains nothing secret.
 */
export async function checkHttp(
  wanted: WantedCheck,
  { path }: HttpHealthCheck,
  signal: AbortSignal,
): Promise<HealthCheckResult> {
  const { overTls } = wanted;
  const socket = overTls ? connectTlsForCheck(wanted, 'http/1.1') : connectForCheck(wanted);
  let client: Client | undefined;
  try {
    // The connection is made here, because the HTTP client would not abort a connection attempt.
    await once(socket, overTls ? 'secureConnect' : 'connect', { signal });
    limitBytes(socket);
    client = clientOver(socket, originOf(wanted, overTls ? 'https' : 'http'));
    const response = await client.request({ method: 'GET', path, headers: HEADERS, signal, reset: true });
    const { statusCode, body } = response;
    await body.dump({ limit: MAX_BODY_BYTES, signal }).catch((error: unknown) => {
      // The status is already known, so a body that is too large is not an error.
      if (!exceedsLimit(socket)) throw error;
    });
    return statusCode >= 200 && statusCode < 400 ? PASSED : failed(`status ${statusCode}`);
  } finally {
    if (socket instanceof TLSSocket) socket.destroy();
    else closeCheckSocket(socket);
    client?.destroy().catch(() => undefined);
  }
}

/**
 * Destroys the socket when it has read more than `MAX_RESPONSE_BYTES`. Must be called before another reader is
 * attached.
 */
function limitBytes(socket: Socket): void {
  socket.on('readable', () => {
    if (exceedsLimit(socket)) socket.destroy(new Error(`an answer of more than ${MAX_RESPONSE_BYTES} bytes`));
  });
}

const exceedsLimit = ({ bytesRead }: Socket): boolean => bytesRead > MAX_RESPONSE_BYTES;

function clientOver(socket: Socket, origin: string): Client {
  return new Client(origin, {
    // No timeouts here, because the caller's signal limits the time.
    headersTimeout: 0,
    bodyTimeout: 0,
    maxHeaderSize: MAX_HEAD_BYTES,
    connect: (_options, callback) => setImmediate(callback, null, socket),
  });
}

function originOf({ endpoint: { address, port }, host }: WantedCheck, scheme: 'http' | 'https'): string {
  return `${scheme}://${host ?? (address.includes(':') ? `[${address}]` : address)}:${port}`;
}
