import type { ServerResponse } from 'node:http';
import type { Writable } from 'node:stream';
import type { Clock } from '@weir/runtime';
import { type AuthorizationScope, isSameScope } from '../access/authorization-scope.ts';

export interface LiveWatcherOptions {
  readonly stream: ServerResponse;
  readonly callerKey: string;
  readonly scope: AuthorizationScope;
  readonly clock: Clock;
  /**
   * Resolves with the caller's current scope. Rejects if the caller may see nothing, or if the API server cannot check the caller's rights.
   */
  readonly currentScope: () => Promise<AuthorizationScope>;
}

/** Time between two checks of the caller's scope. Most checks are cheap, because the results of reviews are cached. */
const SCOPE_CHECK_INTERVAL_MS = 5_000;

/** One live stream. The stream ends if the user's scope changes. */
export class LiveWatcher {
  readonly #options: LiveWatcherOptions;
  #scopeCheckedAt: number;
  #isCheckingScope = false;

  constructor(options: LiveWatcherOptions) {
    const { stream, clock } = options;
    this.#options = options;
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

  /** Writes an event. Skips the event if the client reads too slowly, so that buffered data stays bounded. */
  send(textFor: (scope: AuthorizationScope) => string | undefined): void {
    const { stream, scope, clock } = this.#options;
    if (!this.#isCheckingScope && clock.monotonic() - this.#scopeCheckedAt >= SCOPE_CHECK_INTERVAL_MS)
      void this.#checkScope();
    if (this.isOpen && !stream.writableNeedDrain) stream.write(textFor(scope) ?? ': waiting for a second sample\n\n');
  }

  /** Ends the stream if the scope has changed or cannot be checked. The client then reconnects and gets the history of its new scope. */
  async #checkScope(): Promise<void> {
    const { scope, currentScope, clock } = this.#options;
    this.#isCheckingScope = true;
    try {
      if (!isSameScope(await currentScope(), scope)) this.end();
    } catch {
      this.end();
    } finally {
      this.#isCheckingScope = false;
      this.#scopeCheckedAt = clock.monotonic();
    }
  }
}

/** Writes the texts at the reader's speed, so that buffered data stays bounded. Stops early if the stream ends. */
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
