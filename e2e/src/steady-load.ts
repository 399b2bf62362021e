import { Agent, get } from 'node:http';
import { connectClient, eventually } from '@weir/testkit';

// Clients that never rest while something is changed under them: what fails is what a user would have seen.
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

// Clients that connect again and again while something is changed under them: what fails is what a user would have seen.
export interface SteadyConnections extends AsyncDisposable {
  readonly completed: number;
  readonly failures: readonly string[];
  /** Which pods have answered so far. */
  readonly pods: ReadonlySet<string>;
  /** Resolves after so many further connections, or rejects with the first failure. */
  waitForMore(more: number): Promise<void>;
  /** Lets those under way finish. */
  stop(): Promise<void>;
}

/** Each client makes a connection, is told a pod's name, sends a word and gets it back, ends the connection, and begins again. */
export function steadyConnections({
  hosts,
  port,
  clients,
}: {
  readonly hosts: readonly string[];
  readonly port: number;
  readonly clients: number;
}): SteadyConnections {
  const failures: string[] = [];
  const pods = new Set<string>();
  let made = 0;
  let stopped = false;
  const client = async (number: number): Promise<void> => {
    for (let turn = number; !stopped; turn++) {
      const host = hosts[turn % hosts.length] ?? '';
      try {
        pods.add(await exchangeWord(host, port));
        made += 1;
      } catch (error) {
        failures.push(`${host}: ${error instanceof Error ? error.message : String(error)}`);
      }
      // A pace, so that the clients leave the machine to what they test.
      await new Promise((resolve) => setTimeout(resolve, 5));
    }
  };
  const running = Array.from({ length: clients }, (_, number) => client(number));
  const stop = async (): Promise<void> => {
    stopped = true;
    await Promise.all(running);
  };
  return {
    get completed() {
      return made;
    },
    failures,
    pods,
    async waitForMore(more) {
      const goal = made + more;
      await eventually(
        () => {
          if (made < goal && failures.length === 0) throw new Error(`${made} of ${goal} connections were made`);
        },
        { timeoutMs: 60_000 },
      );
      if (failures.length > 0) throw new Error(`a connection failed: ${failures[0]}`);
    },
    stop,
    [Symbol.asyncDispose]: stop,
  };
}

async function exchangeWord(host: string, port: number): Promise<string> {
  await using client = await connectClient({ host, port });
  const pod = String(await client.take(/\n/)).trim();
  await client.send('word');
  await client.take(4);
  await client.end();
  const ending = await client.ended;
  if (ending.kind !== 'end') throw new Error(`ended by ${JSON.stringify(ending)}`);
  return pod;
}
