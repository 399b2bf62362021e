import type { Heartbeat } from '@weir/model/data-plane';
import type { Clock } from '@weir/runtime';
import type { HeartbeatStore } from '../contract.ts';
import { byNodeAndLife } from '../heartbeat-order.ts';
import { HEARTBEAT_TTL_MS } from '../limits.ts';
import type { Gate } from './gate.ts';

export interface HeartbeatContent {
  /** The last life of each node. */
  readonly lives: Map<string, number>;
  readonly beats: Map<string, Beat>;
}

interface Beat {
  readonly heartbeat: Heartbeat;
  /** On the monotonic clock, in milliseconds. */
  readonly goneAt: number;
}

export function emptyHeartbeatContent(): HeartbeatContent {
  return { lives: new Map(), beats: new Map() };
}

export interface MemoryHeartbeatsOptions {
  readonly gate: Gate;
  readonly clock: Clock;
  readonly onChange: () => Promise<void>;
}

export class MemoryHeartbeats implements HeartbeatStore {
  content: HeartbeatContent = emptyHeartbeatContent();
  readonly #gate: Gate;
  readonly #clock: Clock;
  readonly #onChange: () => Promise<void>;

  constructor({ gate, clock, onChange }: MemoryHeartbeatsOptions) {
    this.#gate = gate;
    this.#clock = clock;
    this.#onChange = onChange;
  }

  async beginLife(node: string, atLeast: number): Promise<number> {
    this.#gate.pass();
    const known = this.content.lives.get(node);
    const life = Math.max(known === undefined ? Math.floor(this.#clock.now() / 1000) : known + 1, atLeast);
    this.content.lives.set(node, life);
    await this.#onChange();
    return life;
  }

  async beat(heartbeat: Heartbeat): Promise<void> {
    this.#gate.pass();
    const goneAt = this.#clock.monotonic() + HEARTBEAT_TTL_MS;
    this.content.beats.set(keyOf(heartbeat.node, heartbeat.life), { heartbeat, goneAt });
  }

  async leave(node: string, life: number): Promise<void> {
    this.#gate.pass();
    this.content.beats.delete(keyOf(node, life));
  }

  async list(): Promise<readonly Heartbeat[]> {
    this.#gate.pass();
    const { beats } = this.content;
    const now = this.#clock.monotonic();
    for (const [key, beat] of beats) if (beat.goneAt <= now) beats.delete(key);
    return [...beats.values()].map(({ heartbeat }) => heartbeat).sort(byNodeAndLife);
  }

  async nodes(): Promise<ReadonlySet<string>> {
    this.#gate.pass();
    return new Set(this.content.lives.keys());
  }
}

function keyOf(node: string, life: number): string {
  return `${life}/${node}`;
}
