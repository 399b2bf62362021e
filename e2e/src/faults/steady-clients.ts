// Clients that exchange data with every node without a pause, and count operations, failures and bytes. A failure is a failure that a user
// would have seen; operations that the fault itself cuts, for example the connections of a killed proxy, are counted separately.
import { setTimeout } from 'node:timers/promises';
import { NODES, type NodeName, nodeAddress } from '../addresses.ts';
import { type ClientConnection, connectTo, type Protocol } from './client-connections.ts';

/** How many exchanges a client makes before it ends its connection, by kind of client. */
const CLIENTS: readonly { readonly protocol: Protocol; readonly exchanges: number }[] = [
  { protocol: 'tcp', exchanges: 1 },
  { protocol: 'tcp', exchanges: Number.POSITIVE_INFINITY },
  { protocol: 'http', exchanges: 200 },
  { protocol: 'h2', exchanges: 100 },
  { protocol: 'udp', exchanges: 25 },
];
const PAUSE_MS = 20;
const RETRY_PAUSE_MS = 200;

export interface Bytes {
  readonly sent: number;
  readonly received: number;
}

/** The node whose proxy the fault ends, and the time in which its operations are cut, in the time of `performance.now()`. */
export interface CutTime {
  readonly node: NodeName;
  readonly from: number;
  until: number;
}

interface OpenConnection {
  readonly node: NodeName;
  readonly openedAt: number;
  readonly connection: ClientConnection;
}

export class SteadyClients {
  readonly failures: string[] = [];
  operations = 0;
  /** Operations that the fault has cut. */
  cutOperations = 0;
  readonly #cuts: CutTime[] = [];
  readonly #open = new Set<OpenConnection>();
  readonly #bytes = new Map<string, Bytes>();
  readonly #exchanged = new Map<string, number>();
  readonly #running: Promise<void>[];
  #isStopping = false;

  constructor() {
    this.#running = NODES.flatMap((node) => CLIENTS.map((client, index) => this.#run(node, { ...client, index })));
  }

  /** Operations on this node no longer count as failed, until the returned time has an end. */
  cut(node: NodeName): CutTime {
    const cut = { node, from: performance.now(), until: Number.POSITIVE_INFINITY };
    this.#cuts.push(cut);
    return cut;
  }

  /** Ends a cut, when the proxy serves again. Ends the node's older connections, because UDP clients do not notice that a proxy ended. */
  async endCut(cut: CutTime): Promise<void> {
    cut.until = performance.now();
    const older = [...this.#open].filter(({ node, openedAt }) => node === cut.node && openedAt < cut.from);
    await Promise.all(older.map(({ connection }) => connection.abort()));
  }

  /** Returns what the clients of a protocol have sent and received on the wire. Complete after `stop`. */
  bytesOf(protocol: Protocol): Bytes {
    return sum(NODES.map((node) => this.#bytes.get(`${protocol} ${node}`) ?? NONE));
  }

  /** Returns how many bytes the clients of a node have exchanged so far, including open connections. */
  bytesAt(node: NodeName): number {
    const ended = [...this.#bytes].filter(([key]) => key.endsWith(` ${node}`)).map(([, bytes]) => bytes);
    const open = [...this.#open].filter((each) => each.node === node).map(({ connection }) => connection);
    const { sent, received } = sum([...ended, ...open]);
    return sent + received;
  }

  /** Resolves when every client has made `count` further operations. Does not wait for the clients of the nodes `except`. */
  async waitForEach(count: number, { except = [] }: { readonly except?: readonly NodeName[] } = {}): Promise<void> {
    const keys = [...this.#exchanged.keys()].filter((key) => !except.some((node) => key.startsWith(node)));
    const goals = keys.map((key) => [key, (this.#exchanged.get(key) ?? 0) + count] as const);
    const deadline = performance.now() + 90_000;
    while (goals.some(([key, goal]) => (this.#exchanged.get(key) ?? 0) < goal)) {
      if (performance.now() > deadline) {
        const late = goals.filter(([key, goal]) => (this.#exchanged.get(key) ?? 0) < goal).map(([key]) => key);
        throw new Error(
          `clients without progress: ${late.join(', ')}; failures: ${this.failures.slice(-5).join('; ')}`,
        );
      }
      await setTimeout(50);
    }
  }

  /** Ends all connections in order. */
  async stop(): Promise<void> {
    this.#isStopping = true;
    await Promise.all(this.#running);
  }

  async #run(
    node: NodeName,
    { protocol, exchanges, index }: { readonly protocol: Protocol; readonly exchanges: number; readonly index: number },
  ): Promise<void> {
    const key = `${node} ${index} ${protocol}`;
    this.#exchanged.set(key, 0);
    while (!this.#isStopping) {
      let startedAt = performance.now();
      let open: OpenConnection | undefined;
      try {
        open = { node, openedAt: startedAt, connection: await connectTo[protocol](nodeAddress(node)) };
        this.#open.add(open);
        for (let count = 0; count < exchanges && !this.#isStopping; count += 1) {
          startedAt = performance.now();
          await open.connection.exchange();
          this.operations += 1;
          this.#exchanged.set(key, (this.#exchanged.get(key) ?? 0) + 1);
          await setTimeout(PAUSE_MS);
        }
        startedAt = performance.now();
        await open.connection.end();
      } catch (error) {
        if (this.#isCut(node, startedAt)) this.cutOperations += 1;
        else this.failures.push(`${key}: ${error instanceof Error ? error.message : String(error)}`);
        await open?.connection.abort().catch(() => undefined);
        await setTimeout(RETRY_PAUSE_MS);
      } finally {
        if (open !== undefined) this.#addBytes(`${protocol} ${node}`, open.connection);
        if (open !== undefined) this.#open.delete(open);
      }
    }
  }

  /** Reports whether a cut of the node overlaps the time from `startedAt` until now. */
  #isCut(node: NodeName, startedAt: number): boolean {
    return this.#cuts.some((cut) => cut.node === node && startedAt <= cut.until);
  }

  #addBytes(key: string, bytes: Bytes): void {
    this.#bytes.set(key, sum([this.#bytes.get(key) ?? NONE, bytes]));
  }
}

const NONE: Bytes = { sent: 0, received: 0 };

export function sum(all: readonly Bytes[]): Bytes {
  return all.reduce<Bytes>((a, b) => ({ sent: a.sent + b.sent, received: a.received + b.received }), NONE);
}
