// Clients of two suspended tenants. The tenant `stopped` is suspended from the start; no client may ever be served. The tenant `later` is
// suspended during the fault.
import { setTimeout } from 'node:timers/promises';
import { connectClient, eventually } from '@weir/testkit';
import { NODES, type NodeName, nodeAddress } from '../addresses.ts';

export const STOPPED_PORT = 7013;
export const LATER_PORT = 7014;

const PROBE_PAUSE_MS = 200;
const ECHO_PAUSE_MS = 50;
const ANSWER_TIMEOUT_MS = 60_000;

export class SuspensionClients {
  /** Attempts to use the Service of a suspended tenant. */
  attempts = 0;
  /** Attempts that a proxy has served, although the tenant is suspended. */
  readonly breaches: string[] = [];
  readonly #running: Promise<void>[];
  /** Nodes whose proxy must not serve the tenant `later` any more. */
  readonly #cutOff = new Set<NodeName>();
  readonly #lastEchoAt = new Map<NodeName, number>();
  #isStopping = false;

  constructor() {
    this.#running = NODES.flatMap((node) => [this.#probe(node), this.#useLater(node)]);
  }

  /** From now on, each echo of the tenant `later` at one of these nodes is a breach. */
  expectCutOff(nodes: readonly NodeName[]): void {
    for (const node of nodes) this.#cutOff.add(node);
  }

  expectServed(): void {
    this.#cutOff.clear();
  }

  /** Waits until these nodes have disconnected the tenant `later`. Returns the milliseconds from `since` to the last echo. */
  async waitUntilCutOff(nodes: readonly NodeName[], { since }: { readonly since: number }): Promise<number> {
    for (const node of nodes) {
      await eventually(
        () => {
          const quietMs = performance.now() - (this.#lastEchoAt.get(node) ?? since);
          if (quietMs < 2_000) throw new Error(`${node} served the tenant "later" ${quietMs.toFixed(0)} ms ago`);
        },
        { timeoutMs: 60_000, intervalMs: 100 },
      );
      this.expectCutOff([node]);
    }
    return Math.max(0, ...nodes.map((node) => (this.#lastEchoAt.get(node) ?? since) - since));
  }

  /** Waits until these nodes serve the tenant `later`. */
  async waitUntilServed(nodes: readonly NodeName[]): Promise<void> {
    const from = performance.now();
    for (const node of nodes) {
      await eventually(
        () => {
          if ((this.#lastEchoAt.get(node) ?? 0) < from) throw new Error(`${node} does not serve the tenant "later"`);
        },
        { timeoutMs: 90_000, intervalMs: 100 },
      );
    }
  }

  async stop(): Promise<void> {
    this.#isStopping = true;
    await Promise.all(this.#running);
  }

  async #probe(node: NodeName): Promise<void> {
    while (!this.#isStopping) {
      this.attempts += 1;
      if (await isServed(node, STOPPED_PORT)) this.breaches.push(`${node} served the suspended tenant "stopped"`);
      await setTimeout(PROBE_PAUSE_MS);
    }
  }

  async #useLater(node: NodeName): Promise<void> {
    while (!this.#isStopping) {
      try {
        await using client = await connectClient({
          host: nodeAddress(node),
          port: LATER_PORT,
          timeoutMs: ANSWER_TIMEOUT_MS,
        });
        while (!this.#isStopping) {
          await client.send('x');
          await client.take(1);
          this.#lastEchoAt.set(node, performance.now());
          if (this.#cutOff.has(node)) this.breaches.push(`${node} served the tenant "later" after the cut-off`);
          await setTimeout(ECHO_PAUSE_MS);
        }
      } catch {
        if (this.#cutOff.has(node)) this.attempts += 1;
        await setTimeout(PROBE_PAUSE_MS);
      }
    }
  }
}

async function isServed(node: NodeName, port: number): Promise<boolean> {
  try {
    await using client = await connectClient({ host: nodeAddress(node), port, timeoutMs: ANSWER_TIMEOUT_MS });
    await client.send('x');
    await client.take(1);
    return true;
  } catch {
    return false;
  }
}
