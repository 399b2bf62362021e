import { Agent, get } from 'node:http';
import { connectClient, eventually } from '@weir/testkit';

// Clients that send requests continuously while a test changes the fleet. Each recorded failure is one that a user would have seen.
export interface SteadyRequests extends AsyncDisposable {
  readonly answered: number;
  readonly failures: readonly string[];
  /** Resolves after `more` further responses, or rejects with the first failure. */
  waitForMore(more: number): Promise<void>;
  /** Starts no more requests and waits for the open requests. */
  stop(): Promise<void>;
}

interface SteadyRequestsOptions {
  readonly urls: readonly string[];
  /** The number of clients. Every second client reuses its connection; the other clients open a connection per request. */
  readonly clients: number;
  readonly pauseMs?: number;
}

/** Starts clients. Each client requests the URLs in rotation, one request at a time, until `stop`. */
export function steadyRequests({ urls, clients, pauseMs = 2 }: SteadyRequestsOptions): SteadyRequests {
  const failures: string[] = [];
  const watchers = new Set<() => void>();
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
      for (const check of watchers) check();
      // The pause leaves processor time to the tested processes.
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
          watchers.delete(check);
        };
        watchers.add(check);
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
  outgoing.once('timeout', () => outgoing.destroy(new Error('no response within 10 s')));
  outgoing.once('error', reject);
  return promise;
}

// Clients that connect continuously while a test changes the fleet. Each recorded failure is one that a user would have seen.
export interface SteadyConnections extends AsyncDisposable {
  readonly completed: number;
  readonly failures: readonly string[];
  /** The names of the pods that have responded so far. */
  readonly pods: ReadonlySet<string>;
  /** Resolves after `more` further completed connections, or rejects with the first failure. */
  waitForMore(more: number): Promise<void>;
  /** Starts no more connections and waits for the open connections. */
  stop(): Promise<void>;
}

/** Starts clients. Each client connects, reads the name of a pod, sends a word, reads the echo, closes the connection, and repeats. */
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
  let completed = 0;
  let stopped = false;
  const client = async (number: number): Promise<void> => {
    for (let turn = number; !stopped; turn++) {
      const host = hosts[turn % hosts.length] ?? '';
      try {
        pods.add(await exchangeWord(host, port));
        completed += 1;
      } catch (error) {
        failures.push(`${host}: ${error instanceof Error ? error.message : String(error)}`);
      }
      // The pause leaves processor time to the tested processes.
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
      return completed;
    },
    failures,
    pods,
    async waitForMore(more) {
      const goal = completed + more;
      await eventually(
        () => {
          if (completed < goal && failures.length === 0)
            throw new Error(`completed ${completed} of ${goal} connections`);
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
  if (ending.kind !== 'end') throw new Error(`the connection ended with ${JSON.stringify(ending)}`);
  return pod;
}
