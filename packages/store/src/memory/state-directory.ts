import { once } from 'node:events';
import { access, constants, open, readFile, rename, stat } from 'node:fs/promises';
import { createServer } from 'node:net';
import { dirname } from 'node:path';
import { type Clock, ensureDirectory, errorMessage, type Logger, type Timer, WeirError } from '@weir/runtime';
import { StoreError } from '../errors.ts';

/** One part of a store, as it lies in the state directory. */
export interface StateFormat<T> {
  /** Stands in the file, so that a file under another's name is noticed. */
  readonly kind: string;
  /** What begins anew when the file is moved away. */
  readonly lossDescription: string;
  encode(content: T): object;
  /** Undefined: it is not of this shape. */
  decode(value: Readonly<Record<string, unknown>>): T | undefined;
}

const STATE_FILE_VERSION = 1;

/** What is in the file; undefined when there is none. Throws DAMAGED rather than begin with less than there was. */
export async function readState<T>(path: string, format: StateFormat<T>): Promise<T | undefined> {
  const refuse = (why: string): never => {
    throw new StoreError('DAMAGED', `the state file ${path} ${why}, or move it away: then ${format.lossDescription}`);
  };
  let text: string;
  try {
    text = await readFile(path, 'utf8');
  } catch (error) {
    if (error instanceof Error && 'code' in error && error.code === 'ENOENT') return undefined;
    return refuse(`cannot be read (${errorMessage(error)}); let the user that runs Weir read it`);
  }
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch (error) {
    return refuse(`is damaged (${errorMessage(error)}); restore it from a backup`);
  }
  if (!isRecord(value) || value.weir !== format.kind) return refuse('is damaged; restore it from a backup');
  if (value.version !== STATE_FILE_VERSION) return refuse(`was written by another version of Weir; run that one`);
  return format.decode(value) ?? refuse('is damaged; restore it from a backup');
}

/** Puts it in place of the old one in one step: after a crash there is the one or the other, whole. */
export async function writeState<T>(path: string, format: StateFormat<T>, content: T): Promise<void> {
  const text = `${JSON.stringify({ weir: format.kind, version: STATE_FILE_VERSION, ...format.encode(content) })}\n`;
  const temporary = `${path}.tmp`;
  const file = await open(temporary, 'w', 0o600);
  try {
    await file.writeFile(text);
    await file.sync();
  } finally {
    await file.close();
  }
  await rename(temporary, path);
  const directory = await open(dirname(path), 'r');
  try {
    await directory.sync();
  } finally {
    await directory.close();
  }
}

/** Makes the directory unless it is there; throws DAMAGED when nothing can be kept in it. */
export async function prepareStateDirectory(path: string): Promise<void> {
  try {
    await ensureDirectory(path);
    await access(path, constants.W_OK | constants.X_OK);
  } catch (error) {
    const reason = error instanceof WeirError ? error.cause : error;
    throw new StoreError(
      'DAMAGED',
      `the state directory ${path} cannot be used (${errorMessage(reason)}); choose one that the user that runs Weir may write`,
    );
  }
}

function isRecord(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

// Two processes that keep one state directory would write over each other's ledger. An abstract Unix socket named after
// the directory is the lock: the kernel takes it back whatever happens to its holder, and no stale file is left. It is seen in
// one network namespace.
export interface DirectoryLock {
  release(): Promise<void>;
}

/** By inode, so that every name of the directory means the same. Throws DAMAGED while somebody else has it. */
export async function lockDirectory(path: string): Promise<DirectoryLock> {
  const { dev, ino } = await stat(path);
  const server = createServer((socket) => socket.destroy());
  try {
    server.listen(`\0weir/state/${dev}/${ino}`);
    await once(server, 'listening');
  } catch (error) {
    const isTaken = error instanceof Error && 'code' in error && error.code === 'EADDRINUSE';
    const why = isTaken ? 'is in use by another process; stop that one' : `cannot be locked (${errorMessage(error)})`;
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

export interface StateWriterOptions<Part extends string> {
  readonly clock: Clock;
  readonly log: Logger;
  /** Writes a part as it is now. */
  readonly write: (part: Part) => Promise<void>;
}

/** What SIGKILL may cost of the parts that are written in the background. */
const WRITE_INTERVAL_MS = 1_000;
/** A part that is long to write is written less often, so that writing takes at most a tenth of the time. */
const MIN_INTERVAL_PER_WRITE_TIME = 10;
const WRITE_RETRY_INTERVAL_MS = 5_000;

/** Writes what has changed, one at a time, each change within about a second; `close` writes the rest. */
export class StateWriter<Part extends string> {
  readonly #options: StateWriterOptions<Part>;
  readonly #pendingSections = new Set<Part>();
  #timer: Timer | undefined;
  #writing: Promise<void> = Promise.resolve();
  #intervalMs = WRITE_INTERVAL_MS;
  #lastError: unknown;

  constructor(options: StateWriterOptions<Part>) {
    this.#options = options;
  }

  /** The part will be written soon. */
  writeSoon(part: Part): void {
    this.#pendingSections.add(part);
    this.#timer ??= this.#options.clock.setTimeout(() => {
      this.#timer = undefined;
      void this.#writePending();
    }, this.#intervalMs);
  }

  /** Resolves when the part is written; when that fails, it is said and tried again later. */
  writeNow(part: Part): Promise<void> {
    this.#pendingSections.add(part);
    return this.#writePending();
  }

  /** Writes the rest; rejects when that fails. */
  async close(): Promise<void> {
    this.#timer?.cancel();
    await this.#writePending();
    this.#timer?.cancel();
    if (this.#lastError !== undefined) {
      throw new StoreError('DAMAGED', 'the last changes could not be written to the state directory', {
        cause: this.#lastError,
      });
    }
  }

  #writePending(): Promise<void> {
    this.#writing = this.#writing.then(async () => {
      const { clock, log, write } = this.#options;
      const started = clock.monotonic();
      for (const part of [...this.#pendingSections]) {
        this.#pendingSections.delete(part);
        try {
          await write(part);
          if (this.#lastError !== undefined) log.info({ state: part }, 'the state is written again');
          this.#lastError = undefined;
        } catch (error) {
          if (this.#lastError === undefined) log.error({ err: error, state: part }, 'the state cannot be written');
          this.#lastError = error;
          this.#intervalMs = WRITE_RETRY_INTERVAL_MS;
          this.writeSoon(part);
          return;
        }
      }
      this.#intervalMs = Math.max(WRITE_INTERVAL_MS, MIN_INTERVAL_PER_WRITE_TIME * (clock.monotonic() - started));
    });
    return this.#writing;
  }
}
