// Clients that never rest while something is changed under them: what fails is what a user would have seen.
import { Agent, get } from 'node:http';

export interface SteadyRequests extends AsyncDisposable {
  readonly answered: number;
  readonly failures: readonly string[];
  /** Resolves after so many further answers, or rejects with the first failure. */
  waitForMore(more: number): Promise<void>;
  /** Lets the requests under way finish. */
  stop(): Promise<void>;
}

interface SteadyRequestsOptions {
  readonly urls: readonly string[];
  readonly clients: number;
  /** Half of the clients keep their connection, the others make one for each request. */
  readonly pauseMs?: number;
}

/** Each client asks the URLs in turn, one request at a time, until stopped. */
export function steadyRequests({ urls, clients, pauseMs = 2 }: SteadyRequestsOptions): SteadyRequests {
  const failures: string[] = [];
  const waiting = new Set<() => void>();
  let answered = 0;
  let stopped = false;
  const client = async (number: number): Promise<void> => {
    const agent = new Agent({ keepAlive: number % 2 === 0, maxSockets: 1 });
    for (let turn = number; !stopped; turn++) {
      const url = urls[turn % urls.length] ?? '';
      try {
        await request(url, agent);
        answered += 1;
      } catch (error) {
        failures.push(`${url}: ${error instanceof Error ? error.message : String(error)}`);
      }
      for (const wake of waiting) wake();
      // A pace, so that the clients leave the machine to what they test.
      await new Promise((resolve) => setTimeout(resolve, pauseMs));
    }
    agent.destroy();
  };
  const running = Array.from({ length: clients }, (_, number) => client(number));
  const stop = async (): Promise<void> => {
    stopped = true;
    await Promise.all(running);
  };
  return {
    get answered() {
      return answered;
    },
    failures,
    waitForMore(more) {
      const goal = answered + more;
      return new Promise((resolve, reject) => {
        const check = (): void => {
          if (failures.length > 0) reject(new Error(`a request failed: ${failures[0]}`));
          else if (answered >= goal) resolve();
          else return;
          waiting.delete(check);
        };
        waiting.add(check);
      });
    },
    stop,
    [Symbol.asyncDispose]: stop,
  };
}

function request(url: string, agent: Agent): Promise<void> {
  const { promise, resolve, reject } = Promise.withResolvers<void>();
  const outgoing = get(url, { agent, timeout: 10_000 }, (response) => {
    response.resume();
    response.once('error', reject);
    response.once('end', () => {
      if (response.statusCode === 200 && response.complete) resolve();
      else reject(new Error(`status ${response.statusCode}, complete: ${response.complete}`));
    });
  });
  outgoing.once('timeout', () => outgoing.destroy(new Error('no answer for 10 s')));
  outgoing.once('error', reject);
  return promise;
}
