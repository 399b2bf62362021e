// Clients that send requests to a proxy until they are stopped, and check each answer.
import { createHash, randomBytes } from 'node:crypto';

/** A request, and the Services that may answer it. */
export interface LoadRequest {
  readonly host: string;
  readonly path: string;
  readonly body: Buffer | undefined;
  readonly id: string;
}

export interface LoadAnswer {
  readonly connection: object;
  readonly status: number;
  readonly text: string;
}

/** How a client sends requests: `send` sends one batch of requests, and resolves when all are answered or failed. */
export interface LoadClient {
  readonly name: string;
  send(load: HttpLoad): Promise<void>;
  close(): void;
}

/** The time from the end of a batch to the next, so that the clients leave processors to the proxy. */
const PAUSE_MS = 10;
const MAX_BODY_BYTES = 40_000;

export interface HttpLoadOptions {
  readonly clients: readonly LoadClient[];
  /** The hosts and paths of the requests. */
  readonly targets: readonly { readonly host: string; readonly path: string }[];
}

export class HttpLoad implements AsyncDisposable {
  /** Which Services and generations may answer a path, such as `web 1`. Written by the test. */
  readonly expected: Map<string, readonly string[]> = new Map();
  /** The number of failed requests by client and cause. */
  readonly failed: Record<string, number> = {};
  /** The connections whose requests have failed. */
  readonly failedConnections: Set<object> = new Set();
  /** Whether `answers` waits although requests have failed. */
  mayFail = false;
  /** The number of requests by client that the proxy has refused unprocessed, so that they may be sent again. */
  readonly unprocessed: Record<string, number> = {};
  /** The number of answers by the Service and generation that sent them. */
  readonly answeredBy: Record<string, number> = {};
  readonly #options: HttpLoadOptions;
  readonly #answers = new Map<LoadClient, number>();
  readonly #running: Promise<void>[] = [];
  #sent = 0;
  #isStopping = false;
  #onAnswer: () => void = () => undefined;

  constructor(options: HttpLoadOptions) {
    this.#options = options;
  }

  get completed(): number {
    return [...this.#answers.values()].reduce((sum, count) => sum + count, 0);
  }

  start(): void {
    for (const client of this.#options.clients) {
      this.#answers.set(client, 0);
      this.#running.push(this.#run(client));
    }
  }

  /** Resolves when each client has received `count` more answers, or when a request has failed unless requests may fail. */
  async answers(count: number): Promise<void> {
    const wanted = [...this.#answers].map(([client, answers]) => [client, answers + count] as const);
    const isEnough = (): boolean => wanted.every(([client, answers]) => (this.#answers.get(client) ?? 0) >= answers);
    while ((this.mayFail || this.failedConnections.size === 0) && !isEnough()) {
      const { promise, resolve } = Promise.withResolvers<void>();
      this.#onAnswer = resolve;
      await promise;
    }
  }

  /** Ends the clients after their present requests. */
  async stop(): Promise<void> {
    this.#isStopping = true;
    await Promise.all(this.#running);
    for (const client of this.#options.clients) client.close();
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.stop();
  }

  /** Returns the next request. */
  next({ hasBody }: { readonly hasBody: boolean }): LoadRequest {
    this.#sent += 1;
    const { targets } = this.#options;
    const { host, path } = targets[this.#sent % targets.length] as { host: string; path: string };
    const body = hasBody ? randomBytes(1 + ((this.#sent * 7_919) % MAX_BODY_BYTES)) : undefined;
    return { host, path, body, id: String(this.#sent) };
  }

  /** Checks the answer to a request. */
  onAnswer(client: LoadClient, { path, id, body }: LoadRequest, answer: LoadAnswer): void {
    const digest = createHash('sha256')
      .update(body ?? '')
      .digest('base64url');
    const [service, generation, ...rest] = answer.text.split(' ');
    const by = `${service} ${generation}`;
    if (answer.status !== 200) this.onFailure(client, answer.connection, `status ${answer.status}`);
    else if (rest.join(' ') !== `${id} ${digest}`)
      this.onFailure(client, answer.connection, 'an answer to another request');
    else if (!this.expected.get(path)?.includes(by))
      this.onFailure(client, answer.connection, `${path} answered by ${by}`);
    else {
      this.answeredBy[by] = (this.answeredBy[by] ?? 0) + 1;
      this.#answers.set(client, (this.#answers.get(client) ?? 0) + 1);
      this.#onAnswer();
    }
  }

  onFailure(client: LoadClient, connection: object, cause: string): void {
    this.failedConnections.add(connection);
    add(this.failed, `${client.name}: ${cause}`);
    this.#onAnswer();
  }

  onUnprocessed(client: LoadClient, count: number): void {
    if (count > 0) add(this.unprocessed, client.name, count);
  }

  async #run(client: LoadClient): Promise<void> {
    while (!this.#isStopping) {
      await client.send(this);
      await new Promise((resolve) => setTimeout(resolve, PAUSE_MS));
    }
  }
}

function add(counts: Record<string, number>, key: string, count = 1): void {
  counts[key] = (counts[key] ?? 0) + count;
}
