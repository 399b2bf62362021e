import type { Socket } from 'node:net';
import { Client } from 'undici';
import { bad, type CheckAnswer, GOOD } from './check-answer.ts';
import { closeCheckSocket, openCheckSocket } from './check-socket.ts';
import type { WantedCheck } from './wanted-check.ts';

const MOST_HEAD_BYTES = 16_384;
/** A body is read so that the endpoint can end its answer, but not for ever. */
const MOST_BODY_BYTES = 65_536;
const HEADERS = { 'user-agent': 'weir-health-check', accept: '*/*' };

/** Good: GET is answered with a status from 200 to 399. Rejects when it is not answered in HTTP, or is stopped. */
export async function checkHttp(wanted: WantedCheck, path: string, signal: AbortSignal): Promise<CheckAnswer> {
  let socket: Socket | undefined;
  const client = new Client(originOf(wanted), {
    // The time is the caller's signal.
    headersTimeout: 0,
    bodyTimeout: 0,
    maxHeaderSize: MOST_HEAD_BYTES,
    connect(_options, callback) {
      const opened = openCheckSocket(wanted);
      socket = opened;
      opened.once('error', (error) => callback(error, null)).once('connect', () => callback(null, opened));
    },
  });
  try {
    const answer = await client.request({ method: 'GET', path, headers: HEADERS, signal, reset: true });
    const { statusCode, body } = answer;
    await body.dump({ limit: MOST_BODY_BYTES, signal });
    return statusCode >= 200 && statusCode < 400 ? GOOD : bad(`status ${statusCode}`);
  } finally {
    if (socket !== undefined) closeCheckSocket(socket);
    client.destroy().catch(() => undefined);
  }
}

function originOf({ endpoint: { address, port } }: WantedCheck): string {
  return `http://${address.includes(':') ? `[${address}]` : address}:${port}`;
}
