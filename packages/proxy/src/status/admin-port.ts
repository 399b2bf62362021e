// The TCP port of admin is one per host, and for a while there are two proxies on it: whoever serves the node has the port. The other one
// waits for it, and serves clients or drains all the same.
import {
  type AdminServer,
  type Clock,
  errorMessage,
  formatHostPort,
  type HostPort,
  type Logger,
  type Timer,
  WeirError,
} from '@weir/runtime';

const RETRY_INTERVAL_MS = 250;
/** A proxy that has just handed the node over needs no longer to close. */
const WARN_AFTER_MS = 2_000;

export interface AdminPortOptions {
  readonly at: HostPort;
  /** Called once, by `start`. */
  readonly server: () => AdminServer;
  /** Whether another proxy has the node, and therefore the port. */
  readonly isOtherProxyServing: () => boolean;
  readonly clock: Clock;
  readonly log: Logger;
}

export class AdminPort {
  readonly #options: AdminPortOptions;
  #server: AdminServer | undefined;
  #isWanted = false;
  #isOpen = false;
  #isClosed = false;
  #settling: Promise<void> | undefined;
  #retry: Timer | undefined;
  #failure: string | undefined;
  /** Since when the port is missing although nobody else has the node. */
  #missingSince: number | undefined;
  #isWarned = false;

  constructor(options: AdminPortOptions) {
    this.#options = options;
  }

  /** Throws when the port can never be had; one that somebody has is waited for. */
  async start(): Promise<void> {
    this.#server = this.#options.server();
    this.#isWanted = true;
    const failure = await this.#open();
    if (failure !== undefined && !isInUse(failure)) throw failure;
    if (failure !== undefined) this.#onOpenFailed(failure);
  }

  /** Undefined while it does not listen. */
  get address(): HostPort | undefined {
    return this.#isOpen ? this.#server?.address() : undefined;
  }

  /** Why it does not listen, and what to do, once it is nothing that a hand-over explains. */
  get warning(): string | undefined {
    return this.#isWarned ? this.#failure : undefined;
  }

  acquire(): void {
    if (this.#isClosed || this.#server === undefined) return;
    this.#isWanted = true;
    this.#reconcile();
  }

  /** The port is free as soon as this returns, unless it is being opened at this moment. */
  release(): void {
    this.#isWanted = false;
    this.#failure = undefined;
    this.#isWarned = false;
    this.#missingSince = undefined;
    this.#reconcile();
  }

  async close(): Promise<void> {
    this.#isClosed = true;
    this.release();
    await this.#settling;
  }

  #reconcile(): void {
    this.#retry?.cancel();
    this.#settling ??= this.#openOrClose().finally(() => {
      this.#settling = undefined;
    });
  }

  async #openOrClose(): Promise<void> {
    while (this.#isWanted !== this.#isOpen) {
      if (!this.#isWanted) {
        this.#isOpen = false;
        await this.#server?.close();
        continue;
      }
      const failure = await this.#open();
      if (failure === undefined) continue;
      if (this.#isWanted) this.#onOpenFailed(failure);
      return;
    }
  }

  /** What was thrown. */
  async #open(): Promise<unknown> {
    const { at, log } = this.#options;
    try {
      await this.#server?.start(new AbortController().signal);
    } catch (error) {
      return error;
    }
    this.#isOpen = true;
    if (this.#failure !== undefined) log.info({ address: formatHostPort(at) }, 'admin has its port now');
    this.#failure = undefined;
    this.#isWarned = false;
    this.#missingSince = undefined;
    return undefined;
  }

  #onOpenFailed(failure: unknown): void {
    const { clock, log, isOtherProxyServing } = this.#options;
    // What a server says of its port is complete; its cause would say it again.
    const reason = failure instanceof WeirError ? failure.message : errorMessage(failure);
    if (this.#failure !== reason) log.info({ reason }, 'admin waits for its port');
    this.#failure = reason;
    const now = clock.monotonic();
    if (isOtherProxyServing()) {
      this.#missingSince = undefined;
      this.#isWarned = false;
    } else this.#missingSince ??= now;
    if (this.#missingSince !== undefined && now - this.#missingSince >= WARN_AFTER_MS && !this.#isWarned) {
      this.#isWarned = true;
      log.warn({ reason }, 'clients are served, but nobody can ask this proxy how it is');
    }
    this.#retry = clock.setTimeout(() => this.#reconcile(), RETRY_INTERVAL_MS);
  }
}

function isInUse(failure: unknown): boolean {
  const { cause } = failure as Error;
  return cause instanceof Error && 'code' in cause && cause.code === 'EADDRINUSE';
}
