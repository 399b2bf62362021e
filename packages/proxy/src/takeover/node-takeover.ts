// Opens, shares or closes the listeners of this proxy, depending on which proxy serves the node. Two proxies share the
// listeners during a takeover.
import type { ListenerKey, TablePosition } from '@weir/model/data-plane';
import type { Clock, Logger } from '@weir/runtime';
import type { ListenerReconciler } from '../supervisor/listeners/listener-reconciler.ts';
import { NodeLock, type NodeOwnership } from './node-lock.ts';
import type { TakeoverActions } from './takeover-actions.ts';

export interface NodeTakeoverOptions {
  readonly fleet: string;
  readonly node: string;
  readonly clock: Clock;
  readonly log: Logger;
  readonly listeners: ListenerReconciler;
  readonly actions: TakeoverActions;
  /** Returns the position of the table that this proxy could serve now; undefined if it cannot serve yet. */
  readonly tableReadyToServe: () => TablePosition | undefined;
  /** Called when this proxy begins to serve the node. */
  readonly onNodeAcquired: () => void;
}

export class NodeTakeover {
  readonly #log: Logger;
  readonly #listeners: ListenerReconciler;
  readonly #lock: NodeLock;
  readonly #onNodeAcquired: () => void;
  #ownership: NodeOwnership = { kind: 'own' };
  #hasOpened = false;

  constructor({ log, listeners, onNodeAcquired, ...options }: NodeTakeoverOptions) {
    this.#log = log;
    this.#listeners = listeners;
    this.#onNodeAcquired = onNodeAcquired;
    this.#lock = new NodeLock({ ...options, onOwnershipChange: (ownership) => this.#onOwnershipChange(ownership) });
  }

  /** Tries to acquire the node. Resolves when it is known which proxy serves the node. */
  start(): Promise<void> {
    return this.#lock.acquire();
  }

  /** If another proxy serves the node, the reason why this proxy serves no traffic; otherwise undefined. */
  get conflict(): string | undefined {
    return this.#ownership.kind === 'other' ? this.#ownership.reason : undefined;
  }

  /** Whether another proxy serves the node, or is handing the node over to this proxy. */
  get isOtherProxyServing(): boolean {
    return this.#ownership.kind !== 'own';
  }

  /**
   * Why this proxy does not serve the node; undefined if this proxy alone serves the node and has opened its listeners.
   */
  get notServingReason(): string | undefined {
    if (this.#ownership.kind === 'joining') return 'the proxy that serves the node is handing it over';
    return this.conflict ?? (this.#hasOpened ? undefined : 'the listeners are being opened');
  }

  /** Whether this proxy served the node and another proxy has taken over. */
  get hasHandedOver(): boolean {
    return this.#ownership.kind === 'other' && this.#ownership.handedOver;
  }

  /** To be called when every listener is open, allocated without listening, or has failed. */
  onListenersSettled(): void {
    if (this.#ownership.kind === 'own') this.#hasOpened = true;
    if (this.#ownership.kind === 'joining')
      this.#lock.onListenersSettled(this.#listeners.firstError(this.#ownership.open));
  }

  /** Lets a waiting proxy take over before a drain. Waits for at most `limitMs`. */
  leave(limitMs: number, signal: AbortSignal): Promise<void> {
    return this.#lock.leave(limitMs, signal);
  }

  /** Reports whether another proxy serves the node. To be called after `close`. */
  isHeldByOther(): Promise<boolean> {
    return this.#lock.isHeldByOther();
  }

  /** Releases the node for good. */
  close(): void {
    this.#lock.release();
  }

  #onOwnershipChange(ownership: NodeOwnership): void {
    const before = this.#ownership;
    this.#ownership = ownership;
    switch (ownership.kind) {
      case 'own':
        if (before.kind !== 'own') this.#log.info('this proxy now serves its node');
        this.#listeners.setMode({ kind: 'serving' });
        this.#onNodeAcquired();
        return;
      case 'joining':
        this.#log.info({ listeners: ownership.open.length }, 'opening listeners next to the predecessor');
        this.#listeners.setMode({ kind: 'joining', predecessorListeners: new Set<ListenerKey>(ownership.open) });
        return;
      case 'other':
        this.#hasOpened = false;
        if (ownership.handedOver) {
          this.#log.info({ reason: ownership.reason }, 'this proxy has handed over its node');
          this.#listeners.setMode({ kind: 'silent' });
          return;
        }
        if (before.kind !== 'other' || before.reason !== ownership.reason)
          this.#log.warn({ reason: ownership.reason }, 'this proxy serves no traffic');
        this.#listeners.setMode({ kind: 'blocked', reason: ownership.reason });
    }
  }
}
