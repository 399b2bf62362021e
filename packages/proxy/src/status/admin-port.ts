// The TCP port of the admin server. During an upgrade, a host has two proxies but only one such port. The proxy that
// serves the node has the port. The other proxy tries again until the port is free.
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
/**
 * How long the port may be in use by another process before a warning is logged. A predecessor closes the port within
 * this time.
 */
const WARN_AFTER_MS = 2_000;

export interface AdminPortOptions {
  readonly at: HostPort;
  /** Creates the admin server. Called once, by `start`. */
  readonly server: () => AdminServer;
  /** Whether another proxy serves the node and therefore has the port. */
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
  /** The time since which the port cannot be opened although no other proxy serves the node. */
  #missingSince: number | undefined;
  #isWarned = false;

  constructor(options: AdminPortOptions) {
    this.#options = options;
  }

  /** Opens the port. Tries again later if the port is in use; throws after any other error. */
  async start(): Promise<void> {
    this.#server = this.#options.server();
    this.#isWanted = true;
    const failure = await this.#open();
    if (failure !== undefined && !isInUse(failure)) throw failure;
    if (failure !== undefined) this.#onOpenFailed(failure);
  }

  /** The address of the admin server; undefined while the port is closed. */
  get address(): HostPort | undefined {
    return this.#isOpen ? this.#server?.address() : undefined;
  }

  /**
   * A warning that says why the port is closed and what to do. Undefined if the port is open, or if a takeover may be
   * the reason why the port is closed.
   */
  get warning(): string | undefined {
    return this.#isWarned ? this.#failure : undefined;
  }

  acquire(): void {
    if (this.#isClosed || this.#server === undefined) return;
    this.#isWanted = true;
    this.#reconcile();
  }

  /**
   * Closes the port. The port is free when `release` returns, unless the port is being opened when `release` is called.
   */
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

  /** Tries to open the port. Returns the error, or undefined if the port is open. */
  async #open(): Promise<unknown> {
    const { at, log } = this.#options;
    try {
      await this.#server?.start(new AbortController().signal);
    } catch (error) {
      return error;
    }
    this.#isOpen = true;
    if (this.#failure !== undefined) log.info({ address: formatHostPort(at) }, 'opened the admin port');
    this.#failure = undefined;
    this.#isWarned = false;
    this.#missingSince = undefined;
    return undefined;
  }

  #onOpenFailed(failure: unknown): void {
    const { clock, log, isOtherProxyServing } = this.#options;
    // The message of a WeirError includes its cause.
    const reason = failure instanceof WeirError ? failure.message : errorMessage(failure);
    if (this.#failure !== reason) log.info({ reason }, 'waiting for the admin port');
    this.#failure = reason;
    const now = clock.monotonic();
    if (isOtherProxyServing()) {
      this.#missingSince = undefined;
      this.#isWarned = false;
    } else this.#missingSince ??= now;
    if (this.#missingSince !== undefined && now - this.#missingSince >= WARN_AFTER_MS && !this.#isWarned) {
      this.#isWarned = true;
      log.warn(
        { reason },
        'failed to open the admin port; clients are served, but probes and metrics are not answered',
      );
    }
    this.#retry = clock.setTimeout(() => this.#reconcile(), RETRY_INTERVAL_MS);
  }
}

function isInUse(failure: unknown): boolean {
  const { cause } = failure as Error;
  return cause instanceof Error && 'code' in cause && cause.code === 'EADDRINUSE';
}
