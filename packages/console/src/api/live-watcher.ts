import type { ServerResponse } from 'node:http';
import type { Clock } from '@weir/runtime';
import { isSameSight, type Sight } from '../access/sight.ts';

export interface LiveWatcherOptions {
  readonly stream: ServerResponse;
  /** Of the caller. */
  readonly key: string;
  readonly sight: Sight;
  readonly clock: Clock;
  /** What the caller sees now; rejects when that is nothing, or can no longer be told. */
  readonly look: () => Promise<Sight>;
}

/** The answers to it are kept, mostly: what this costs is a look into them. */
const LOOK_EVERY_MS = 5_000;

/** One stream to somebody whose rights may end while it is open. */
export class LiveWatcher {
  readonly #options: LiveWatcherOptions;
  #sight: Sight;
  #lookedAt: number;
  #isLooking = false;

  constructor(options: LiveWatcherOptions) {
    const { stream, sight, clock } = options;
    this.#options = options;
    this.#sight = sight;
    this.#lookedAt = clock.monotonic();
    stream.on('error', () => stream.destroy());
    stream.writeHead(200, { 'content-type': 'text/event-stream', 'cache-control': 'no-store', connection: 'close' });
  }

  get key(): string {
    return this.#options.key;
  }

  get isOpen(): boolean {
    const { stream } = this.#options;
    return !stream.destroyed && !stream.writableEnded;
  }

  end(): void {
    this.#options.stream.end();
  }

  /** A watcher that does not read misses frames: what waits for it stays bounded. */
  send(textFor: (sight: Sight) => string | undefined): void {
    const { stream, clock } = this.#options;
    if (!this.#isLooking && clock.monotonic() - this.#lookedAt >= LOOK_EVERY_MS) void this.#look();
    if (this.isOpen && !stream.writableNeedDrain)
      stream.write(textFor(this.#sight) ?? ': waiting for a second sample\n\n');
  }

  /** Whoever sees other things now connects again, and gets the graphs of those. */
  async #look(): Promise<void> {
    const { look, clock } = this.#options;
    this.#isLooking = true;
    try {
      const sight = await look();
      if (!isSameSight(sight, this.#sight)) this.end();
      this.#sight = sight;
    } catch {
      this.end();
    } finally {
      this.#isLooking = false;
      this.#lookedAt = clock.monotonic();
    }
  }
}
