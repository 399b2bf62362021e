// Whose turn it is to listen on this node, brought to the listeners.
import type { ListenerKey, TablePosition } from '@weir/model/data-plane';
import type { Clock, Logger } from '@weir/runtime';
import type { ListenerReconciler } from '../supervisor/listeners/listener-reconciler.ts';
import { NodeLock, type NodeOwnership } from './node-lock.ts';
import type { TakeoverActions } from './predecessor.ts';

export interface NodeTakeoverOptions {
  readonly fleet: string;
  readonly node: string;
  readonly clock: Clock;
  readonly log: Logger;
  readonly listeners: ListenerReconciler;
  readonly actions: TakeoverActions;
  /** The table that could be served now; undefined: none yet. */
  readonly tableReadyToServe: () => TablePosition | undefined;
  /** The node is this proxy's. */
  readonly onNodeAcquired: () => void;
}

export class NodeTakeover {
  readonly #log: Logger;
  readonly #listeners: ListenerReconciler;
  readonly #lock: NodeLock;
  readonly #onNodeAcquired: () => void;
  #ownership: NodeOwnership = { kind: 'ours' };
  #hasOpened = false;

  constructor({ log, listeners, onNodeAcquired, ...options }: NodeTakeoverOptions) {
    this.#log = log;
    this.#listeners = listeners;
    this.#onNodeAcquired = onNodeAcquired;
    this.#lock = new NodeLock({ ...options, onOwnershipChange: (turn) => this.#onOwnershipChange(turn) });
  }

  /** Resolves when it is known whose turn it is. */
  start(): Promise<void> {
    return this.#lock.acquire();
  }

  /** Why this proxy serves nothing: another one of its node does. */
  get conflict(): string | undefined {
    return this.#ownership.kind === 'others' ? this.#ownership.reason : undefined;
  }

  /** Another proxy serves the node, or is about to hand it over. */
  get isOtherProxyServing(): boolean {
    return this.#ownership.kind !== 'ours';
  }

  /** Why clients do not reach this proxy, or not it alone; undefined: its node is its own, and its listeners have been opened. */
  get notServingReason(): string | undefined {
    if (this.#ownership.kind === 'beside') return 'the proxy that serves the node is handing it over';
    return this.conflict ?? (this.#hasOpened ? undefined : 'the listeners are being opened');
  }

  /** It served, and another one has taken over. */
  get hasHandedOver(): boolean {
    return this.#ownership.kind === 'others' && this.#ownership.handedOver;
  }

  /** All listeners are open, held or failed. */
  onListenersSettled(): void {
    if (this.#ownership.kind === 'ours') this.#hasOpened = true;
    if (this.#ownership.kind === 'beside')
      this.#lock.onListenersSettled(this.#listeners.firstError(this.#ownership.open));
  }

  /** Before a drain: lets somebody who waits take over first, for at most so long. */
  leave(limitMs: number, signal: AbortSignal): Promise<void> {
    return this.#lock.leave(limitMs, signal);
  }

  /** After the end: whether another proxy serves the node by now. */
  isHeldByOther(): Promise<boolean> {
    return this.#lock.isHeldByOther();
  }

  /** For good. */
  close(): void {
    this.#lock.release();
  }

  #onOwnershipChange(turn: NodeOwnership): void {
    const before = this.#ownership;
    this.#ownership = turn;
    switch (turn.kind) {
      case 'ours':
        if (before.kind !== 'ours') this.#log.info('this proxy serves its node now');
        this.#listeners.setMode({ kind: 'serving' });
        this.#onNodeAcquired();
        return;
      case 'beside':
        this.#log.info({ listeners: turn.open.length }, 'this proxy listens beside the one that hands over');
        this.#listeners.setMode({ kind: 'joining', predecessorListeners: new Set<ListenerKey>(turn.open) });
        return;
      case 'others':
        this.#hasOpened = false;
        if (turn.handedOver) {
          this.#log.info({ reason: turn.reason }, 'this proxy has handed over its node');
          this.#listeners.setMode({ kind: 'silent' });
          return;
        }
        if (before.kind !== 'others' || before.reason !== turn.reason)
          this.#log.warn({ reason: turn.reason }, 'nothing is served');
        this.#listeners.setMode({ kind: 'blocked', reason: turn.reason });
    }
  }
}
