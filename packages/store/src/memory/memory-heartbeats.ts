import type { Heartbeat } from '@weir/model/data-plane';
import type { Clock } from '@weir/runtime';
import { compareHeartbeats } from '../comparators.ts';
import type { HeartbeatStore } from '../contract.ts';
import { HEARTBEAT_TTL_MS } from '../limits.ts';
import type { MemoryConnection } from './memory-connection.ts';

export interface HeartbeatContent {
  /** The number of the last incarnation, by node. */
  readonly lastIncarnations: Map<string, number>;
  readonly heartbeats: Map<string, StoredHeartbeat>;
}

interface StoredHeartbeat {
  readonly heartbeat: Heartbeat;
  /** When the heartbeat expires, in milliseconds of the monotonic clock. */
  readonly expiresAt: number;
}

export function emptyHeartbeatContent(): HeartbeatContent {
  return { lastIncarnations: new Map(), heartbeats: new Map() };
}

export interface MemoryHeartbeatsOptions {
  readonly connection: MemoryConnection;
  readonly clock: Clock;
  readonly onChange: () => Promise<void>;
}

export class MemoryHeartbeats implements HeartbeatStore {
  content: HeartbeatContent = emptyHeartbeatContent();
  readonly #connection: MemoryConnection;
  readonly #clock: Clock;
  readonly #onChange: () => Promise<void>;

  constructor({ connection, clock, onChange }: MemoryHeartbeatsOptions) {
    this.#connection = connection;
    this.#clock = clock;
    this.#onChange = onChange;
  }

  async beginIncarnation(node: string, atLeast: number): Promise<number> {
    this.#connection.assertReady();
    const known = this.content.lastIncarnations.get(node) ?? 0;
    const life = Math.max(known + 1, Math.floor(this.#clock.now() / 1000), atLeast);
    this.content.lastIncarnations.set(node, life);
    await this.#onChange();
    return life;
  }

  async record(heartbeat: Heartbeat): Promise<void> {
    this.#connection.assertReady();
    const expiresAt = this.#clock.monotonic() + HEARTBEAT_TTL_MS;
    const { node, life } = heartbeat;
    this.content.heartbeats.set(keyOf(node, life), { heartbeat, expiresAt });
    const { lastIncarnations } = this.content;
    if ((lastIncarnations.get(node) ?? 0) < life) lastIncarnations.set(node, life);
  }

  async remove(node: string, life: number): Promise<void> {
    this.#connection.assertReady();
    this.content.heartbeats.delete(keyOf(node, life));
  }

  async list(): Promise<readonly Heartbeat[]> {
    this.#connection.assertReady();
    const { heartbeats } = this.content;
    const now = this.#clock.monotonic();
    for (const [key, { expiresAt }] of heartbeats) if (expiresAt <= now) heartbeats.delete(key);
    return [...heartbeats.values()].map(({ heartbeat }) => heartbeat).sort(compareHeartbeats);
  }

  async knownNodes(): Promise<ReadonlySet<string>> {
    this.#connection.assertReady();
    return new Set(this.content.lastIncarnations.keys());
  }
}

function keyOf(node: string, life: number): string {
  return `${life}/${node}`;
}
