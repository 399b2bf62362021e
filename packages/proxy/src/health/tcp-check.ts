import { once } from 'node:events';
import { type CheckAnswer, GOOD } from './check-answer.ts';
import { closeCheckSocket, openCheckSocket } from './check-socket.ts';
import type { WantedCheck } from './wanted-check.ts';

/** Good: it takes a connection. Rejects when it does not, or is stopped. */
export async function checkTcp(wanted: WantedCheck, signal: AbortSignal): Promise<CheckAnswer> {
  const socket = openCheckSocket(wanted);
  try {
    await once(socket, 'connect', { signal });
    return GOOD;
  } finally {
    closeCheckSocket(socket);
  }
}
