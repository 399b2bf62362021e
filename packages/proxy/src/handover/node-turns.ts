// Whose turn it is to listen on this node, brought to the listeners.
import type { ListenerKey, Position } from '@weir/model/data-plane';
import type { Clock, Logger } from '@weir/runtime';
import type { ListenerBook } from '../listeners/listener-book.ts';
import type { Ceding } from './holder.ts';
import { NodeGuard, type Turn } from './node-guard.ts';

export interface NodeTurnsOptions {
  readonly fleet: string;
  readonly node: string;
  readonly clock: Clock;
  readonly log: Logger;
  readonly listeners: ListenerBook;
  readonly ceding: Ceding;
  /** The table that could be served now; undefined: none yet. */
  readonly prepared: () => Position | undefined;
  /** The node is this proxy's. */
  readonly onOurs: () => void;
}

export class NodeTurns {
  readonly #log: Logger;
  readonly #listeners: ListenerBook;
  readonly #guard: NodeGuard;
  readonly #onOurs: () => void;
  #turn: Turn = { kind: 'ours' };
  #hasOpened = false;

  constructor({ log, listeners, onOurs, ...options }: NodeTurnsOptions) {
    this.#log = log;
    this.#listeners = listeners;
    this.#onOurs = onOurs;
    this.#guard = new NodeGuard({ ...options, onTurn: (turn) => this.#take(turn) });
  }

  /** Resolves when it is known whose turn it is. */
  begin(): Promise<void> {
    return this.#guard.take();
  }

  /** Why this proxy serves nothing: another one of its node does. */
  get conflict(): string | undefined {
    return this.#turn.kind === 'others' ? this.#turn.reason : undefined;
  }

  /** Another proxy serves the node, or is about to hand it over. */
  get isOthers(): boolean {
    return this.#turn.kind !== 'ours';
  }

  /** Why clients do not reach this proxy, or not it alone; undefined: its node is its own, and its listeners have been opened. */
  get notServing(): string | undefined {
    if (this.#turn.kind === 'beside') return 'the proxy that serves the node is handing it over';
    return this.conflict ?? (this.#hasOpened ? undefined : 'the listeners are being opened');
  }

  /** It served, and another one has taken over. */
  get hasHandedOver(): boolean {
    return this.#turn.kind === 'others' && this.#turn.handedOver;
  }

  /** All listeners are open, held or failed. */
  settled(): void {
    if (this.#turn.kind === 'ours') this.#hasOpened = true;
    if (this.#turn.kind === 'beside') this.#guard.settled(this.#listeners.problemAmong(this.#turn.open));
  }

  /** Before a drain: lets somebody who waits take over first, for at most so long. */
  leave(limitMs: number, signal: AbortSignal): Promise<void> {
    return this.#guard.leave(limitMs, signal);
  }

  /** After the end: whether another proxy serves the node by now. */
  isTaken(): Promise<boolean> {
    return this.#guard.isTaken();
  }

  /** For good. */
  end(): void {
    this.#guard.release();
  }

  #take(turn: Turn): void {
    const before = this.#turn;
    this.#turn = turn;
    switch (turn.kind) {
      case 'ours':
        if (before.kind !== 'ours') this.#log.info('this proxy serves its node now');
        this.#listeners.enter({ kind: 'serving' });
        this.#onOurs();
        return;
      case 'beside':
        this.#log.info({ listeners: turn.open.length }, 'this proxy listens beside the one that hands over');
        this.#listeners.enter({ kind: 'beside', others: new Set<ListenerKey>(turn.open) });
        return;
      case 'others':
        this.#hasOpened = false;
        if (turn.handedOver) {
          this.#log.info({ reason: turn.reason }, 'this proxy has handed over its node');
          this.#listeners.enter({ kind: 'silent' });
          return;
        }
        if (before.kind !== 'others' || before.reason !== turn.reason)
          this.#log.warn({ reason: turn.reason }, 'nothing is served');
        this.#listeners.enter({ kind: 'blocked', reason: turn.reason });
    }
  }
}
