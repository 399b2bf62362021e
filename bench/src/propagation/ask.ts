import { connect } from 'node:net';
import { monotonicMs } from '../control/same-time.ts';
import type { SocketAddress } from './places.ts';

/** What one new connection was told; times of the machine's monotonic clock. */
export type PollResponse = {
  readonly startedAt: number;
  readonly endedAt: number;
  /** The name of the backend; anything else is an error in words. */
  readonly said: string;
};

const RESPONSE_TIMEOUT_MS = 2_000;

export function requestOnce(place: SocketAddress): Promise<PollResponse> {
  const { promise, resolve } = Promise.withResolvers<PollResponse>();
  const startedAt = monotonicMs();
  const told = (said: string): void => {
    socket.destroy();
    resolve({ startedAt, endedAt: monotonicMs(), said });
  };
  let said = '';
  const socket = connect(place);
  socket.setTimeout(RESPONSE_TIMEOUT_MS);
  socket.setEncoding('utf8');
  socket.on('data', (text: string) => {
    said += text;
  });
  socket.once('end', () => told(said === '' ? 'closed without an answer' : said));
  socket.once('timeout', () => told(`no answer for ${RESPONSE_TIMEOUT_MS} ms`));
  socket.once('error', (error: NodeJS.ErrnoException) => told(error.code ?? error.message));
  return promise;
}
