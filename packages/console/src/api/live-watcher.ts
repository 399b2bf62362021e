import type { ServerResponse } from 'node:http';
import type { Writable } from 'node:stream';
import type { Clock } from '@weir/runtime';
import { type AuthorizationScope, isSameScope } from '../access/authorization-scope.ts';

export interface LiveWatcherOptions {
  readonly stream: ServerResponse;
  /** Of the caller. */
  readonly callerKey: string;
  readonly scope: AuthorizationScope;
  readonly clock: Clock;
  /** What the caller sees now; rejects when that is nothing, or can no longer be told. */
  readonly currentScope: () => Promise<AuthorizationScope>;
}

/** The answers to it are kept, mostly: what this costs is a look into them. */
const SCOPE_CHECK_INTERVAL_MS = 5_000;

/** One stream to somebody whose rights may end while it is open. */
export class LiveWatcher {
  readonly #options: LiveWatcherOptions;
  #scope: AuthorizationScope;
  #scopeCheckedAt: number;
  #isCheckingScope = false;

  constructor(options: LiveWatcherOptions) {
    const { stream, scope, clock } = options;
    this.#options = options;
    this.#scope = scope;
    this.#scopeCheckedAt = clock.monotonic();
    stream.on('error', () => stream.destroy());
    stream.writeHead(200, { 'content-type': 'text/event-stream', 'cache-control': 'no-store', connection: 'close' });
  }

  get callerKey(): string {
    return this.#options.callerKey;
  }

  get isOpen(): boolean {
    const { stream } = this.#options;
    return !stream.destroyed && !stream.writableEnded;
  }

  end(): void {
    this.#options.stream.end();
  }

  /** A watcher that does not read misses frames: what waits for it stays bounded. */
  send(textFor: (sight: AuthorizationScope) => string | undefined): void {
    const { stream, clock } = this.#options;
    if (!this.#isCheckingScope && clock.monotonic() - this.#scopeCheckedAt >= SCOPE_CHECK_INTERVAL_MS)
      void this.#checkScope();
    if (this.isOpen && !stream.writableNeedDrain)
      stream.write(textFor(this.#scope) ?? ': waiting for a second sample\n\n');
  }

  /** Whoever sees other things now connects again, and gets the graphs of those. */
  async #checkScope(): Promise<void> {
    const { currentScope, clock } = this.#options;
    this.#isCheckingScope = true;
    try {
      const sight = await currentScope();
      if (!isSameScope(sight, this.#scope)) this.end();
      this.#scope = sight;
    } catch {
      this.end();
    } finally {
      this.#isCheckingScope = false;
      this.#scopeCheckedAt = clock.monotonic();
    }
  }
}

/** Writes the texts no faster than they are read, so that only so much waits in memory; ends early with the stream. */
export async function writeWithBackpressure(stream: Writable, texts: Iterable<string>): Promise<void> {
  for (const text of texts) {
    if (stream.destroyed || stream.writableEnded) return;
    if (!stream.write(text)) await untilDrained(stream);
  }
}

function untilDrained(stream: Writable): Promise<void> {
  return new Promise((resolve) => {
    const settle = (): void => {
      stream.off('drain', settle);
      stream.off('close', settle);
      resolve();
    };
    stream.on('drain', settle);
    stream.on('close', settle);
  });
}
