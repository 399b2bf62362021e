import { once } from 'node:events';
import { access, constants, stat } from 'node:fs/promises';
import { createServer } from 'node:net';
import {
  type Clock,
  ensureDirectory,
  errorMessage,
  type Logger,
  readFileIfPresent,
  type Timer,
  WeirError,
  writeFileAtomic,
} from '@weir/runtime';
import { StoreError } from '../errors.ts';

/** The JSON format of one section of a store in the state directory. */
export interface StateFormat<T> {
  /**
   * The kind of section. Each file contains the kind of its section, so that a file under the name of another section's file is detected.
   */
  readonly kind: string;
  /** What happens to the state if the user moves the file away, as part of an error message. */
  readonly lossDescription: string;
  encode(content: T): object;
  /** Returns undefined if the value does not have the shape of this section. */
  decode(value: Readonly<Record<string, unknown>>): T | undefined;
}

const STATE_FILE_VERSION = 1;

/**
 * Reads a state file. Returns undefined if the file does not exist. Throws DAMAGED if the file is invalid or cannot be read, instead of
 * losing state silently.
 */
export async function readState<T>(path: string, format: StateFormat<T>): Promise<T | undefined> {
  const refuse = (why: string): never => {
    throw new StoreError(
      'DAMAGED',
      `the state file ${path} ${why}, or move the file away (then ${format.lossDescription})`,
    );
  };
  let text: string | undefined;
  try {
    text = await readFileIfPresent(path);
  } catch (error) {
    return refuse(
      `cannot be read (${errorMessage(causeOf(error))}); give the user of this process permission to read the file`,
    );
  }
  if (text === undefined) return undefined;
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch (error) {
    return refuse(`is damaged (${errorMessage(error)}); restore it from a backup`);
  }
  if (!isRecord(value) || value.weir !== format.kind) return refuse('is damaged; restore it from a backup');
  if (value.version !== STATE_FILE_VERSION) return refuse(`was written by another version of Weir; run that version`);
  return format.decode(value) ?? refuse('is damaged; restore it from a backup');
}

/** Replaces a state file atomically. Throws a `WeirError` FILE_FAILED if the write fails. */
export async function writeState<T>(path: string, format: StateFormat<T>, content: T): Promise<void> {
  const value = { weir: format.kind, version: STATE_FILE_VERSION, ...format.encode(content) };
  await writeFileAtomic(path, `${JSON.stringify(value)}\n`);
}

/** Creates the state directory unless it exists. Throws DAMAGED if the directory cannot be created or is not writable. */
export async function prepareStateDirectory(path: string): Promise<void> {
  try {
    await ensureDirectory(path);
    await access(path, constants.W_OK | constants.X_OK);
  } catch (error) {
    throw new StoreError(
      'DAMAGED',
      `the state directory ${path} cannot be used (${errorMessage(causeOf(error))}); choose a directory in which the user of this process may write`,
    );
  }
}

/** Returns the cause of a `WeirError`, because the message of the `WeirError` repeats the path. Returns other errors unchanged. */
function causeOf(error: unknown): unknown {
  return error instanceof WeirError ? error.cause : error;
}

function isRecord(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

export interface DirectoryLock {
  release(): Promise<void>;
}

/**
 * Locks a state directory, because two processes would overwrite each other's usage ledger. Throws DAMAGED if another process holds the
 * lock. The lock is an abstract Unix socket named by the device and inode of the directory. The kernel releases the lock when the process
 * ends, and every path of the directory maps to the same lock. Processes in other network namespaces are not excluded.
 */
export async function lockDirectory(path: string): Promise<DirectoryLock> {
  const { dev, ino } = await stat(path);
  const server = createServer((socket) => socket.destroy());
  try {
    server.listen(`\0weir/state/${dev}/${ino}`);
    await once(server, 'listening');
  } catch (error) {
    const isTaken = error instanceof Error && 'code' in error && error.code === 'EADDRINUSE';
    const why = isTaken
      ? 'is in use by another process; stop that process'
      : `cannot be locked (${errorMessage(error)})`;
    throw new StoreError('DAMAGED', `the state directory ${path} ${why}, or choose another directory`, {
      cause: error,
    });
  }
  server.unref();
  return {
    async release() {
      if (!server.listening) return;
      server.close();
      await once(server, 'close');
    },
  };
}

export interface StateWriterOptions<Section extends string> {
  readonly clock: Clock;
  readonly log: Logger;
  /** Writes the current content of a section. */
  readonly write: (section: Section) => Promise<void>;
}

/** How long a changed section waits for its write in the background. SIGKILL loses the changes that are still waiting. */
const WRITE_INTERVAL_MS = 1_000;
/** The minimum wait before the next write, as a multiple of the duration of the last write. Limits writes to about a tenth of the time. */
const MIN_INTERVAL_PER_WRITE_TIME = 10;
const WRITE_RETRY_INTERVAL_MS = 5_000;

/** Writes changed sections one at a time, usually within a second. `close` writes the sections that are still waiting. */
export class StateWriter<Section extends string> {
  readonly #options: StateWriterOptions<Section>;
  readonly #pendingSections = new Set<Section>();
  #timer: Timer | undefined;
  #writing: Promise<void> = Promise.resolve();
  #intervalMs = WRITE_INTERVAL_MS;
  #lastError: unknown;

  constructor(options: StateWriterOptions<Section>) {
    this.#options = options;
  }

  /** Marks the section as changed, to be written in the background. */
  writeSoon(section: Section): void {
    this.#pendingSections.add(section);
    this.#timer ??= this.#options.clock.setTimeout(() => {
      this.#timer = undefined;
      void this.#writePending();
    }, this.#intervalMs);
  }

  /** Resolves when the section is written. A failed write is logged and retried in the background; the promise still resolves. */
  writeNow(section: Section): Promise<void> {
    this.#pendingSections.add(section);
    return this.#writePending();
  }

  /** Writes the sections that are still waiting; rejects with DAMAGED if a write fails. */
  async close(): Promise<void> {
    this.#timer?.cancel();
    await this.#writePending();
    this.#timer?.cancel();
    if (this.#lastError !== undefined) {
      throw new StoreError('DAMAGED', 'failed to write the last changes to the state directory', {
        cause: this.#lastError,
      });
    }
  }

  #writePending(): Promise<void> {
    this.#writing = this.#writing.then(async () => {
      const { clock, log, write } = this.#options;
      const started = clock.monotonic();
      for (const section of [...this.#pendingSections]) {
        this.#pendingSections.delete(section);
        try {
          await write(section);
          if (this.#lastError !== undefined) log.info({ state: section }, 'writing the state works again');
          this.#lastError = undefined;
        } catch (error) {
          if (this.#lastError === undefined)
            log.error({ err: error, state: section }, 'failed to write the state; retrying');
          this.#lastError = error;
          this.#intervalMs = WRITE_RETRY_INTERVAL_MS;
          this.writeSoon(section);
          return;
        }
      }
      this.#intervalMs = Math.max(WRITE_INTERVAL_MS, MIN_INTERVAL_PER_WRITE_TIME * (clock.monotonic() - started));
    });
    return this.#writing;
  }
}
