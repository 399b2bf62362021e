import { connect } from 'node:net';
import { sameTime } from '../control/same-time.ts';
import type { Place } from './places.ts';

/** What one new connection was told; times of the machine's monotonic clock. */
export type Answer = {
  readonly startedAt: number;
  readonly endedAt: number;
  /** The name of the backend; anything else is an error in words. */
  readonly said: string;
};

const longestMs = 2_000;

export function ask(place: Place): Promise<Answer> {
  const { promise, resolve } = Promise.withResolvers<Answer>();
  const startedAt = sameTime();
  const told = (said: string): void => {
    socket.destroy();
    resolve({ startedAt, endedAt: sameTime(), said });
  };
  let said = '';
  const socket = connect(place);
  socket.setTimeout(longestMs);
  socket.setEncoding('utf8');
  socket.on('data', (text: string) => {
    said += text;
  });
  socket.once('end', () => told(said === '' ? 'closed without an answer' : said));
  socket.once('timeout', () => told(`no answer for ${longestMs} ms`));
  socket.once('error', (error: NodeJS.ErrnoException) => told(error.code ?? error.message));
  return promise;
}
