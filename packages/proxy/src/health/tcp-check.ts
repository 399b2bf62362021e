import { once } from 'node:events';
import { type CheckResult, PASSED } from './check-answer.ts';
import { closeCheckSocket, connectForCheck } from './check-socket.ts';
import type { WantedCheck } from './wanted-check.ts';

/** Good: it takes a connection. Rejects when it does not, or is stopped. */
export async function checkTcp(wanted: WantedCheck, signal: AbortSignal): Promise<CheckResult> {
  const socket = connectForCheck(wanted);
  try {
    await once(socket, 'connect', { signal });
    return PASSED;
  } finally {
    closeCheckSocket(socket);
  }
}
