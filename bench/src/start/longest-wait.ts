import { Agent, get } from 'node:http';
import { setTimeout as pause } from 'node:timers/promises';
import { monotonicMs } from '../control/same-time.ts';

const PROBE_INTERVAL_MS = 5;

/**
 * How long the main thread of a process keeps somebody waiting at most, while `work` goes on: what a short question costs, asked again
 * and again on a connection of its own.
 */
export async function measureMaxResponseTime<T>(
  admin: string,
  work: () => Promise<T>,
): Promise<{ readonly ms: number; readonly value: T }> {
  const agent = new Agent({ keepAlive: true, maxSockets: 1 });
  let isOver = false;
  const working = work().finally(() => {
    isOver = true;
  });
  try {
    let ms = 0;
    do {
      const askedAt = monotonicMs();
      await probeHealth(admin, agent);
      ms = Math.max(ms, monotonicMs() - askedAt);
      await pause(PROBE_INTERVAL_MS);
    } while (!isOver);
    return { ms, value: await working };
  } finally {
    agent.destroy();
    await working.catch(() => undefined);
  }
}

function probeHealth(admin: string, agent: Agent): Promise<void> {
  return new Promise((resolve, reject) => {
    get(`http://${admin}/healthz`, { agent }, (response) => {
      response.resume();
      response.once('end', resolve);
      response.once('error', reject);
    }).once('error', reject);
  });
}
