import { errorMessage, WeirError } from '../errors.ts';
import type { Logger } from '../log.ts';
import { isUsageError } from './exit-status.ts';

/**
 * A component of a process with a life cycle, such as a connection, a server or a loop. `main.ts` lists all parts in
 * one array.
 */
export interface Part {
  readonly name: string;
  /**
   * Starts the part, and resolves when the part works. Must stop when `signal` aborts. Must clean up before it throws,
   * because `close` is then not called.
   */
  start(signal: AbortSignal): Promise<void> | void;
  /** Called once, and only after `start` succeeded. */
  close(): Promise<void> | void;
}

export interface RunningParts {
  /**
   * Closes the parts in reverse order of their start. If a part fails to close, closes the remaining parts too, then
   * rejects with `CLOSE_FAILED`. Further calls return the same promise.
   */
  close(): Promise<void>;
}

/**
 * Starts the parts in the listed order. If a part fails or `signal` aborts, closes the started parts and throws. After
 * an abort or a usage error, throws the error unchanged; otherwise throws `START_FAILED` with the name of the part.
 */
export async function startParts(
  parts: readonly Part[],
  { log, signal }: { readonly log: Logger; readonly signal: AbortSignal },
): Promise<RunningParts> {
  const started: Part[] = [];
  for (const part of parts) {
    try {
      signal.throwIfAborted();
      await part.start(signal);
      started.push(part);
      log.debug({ part: part.name }, 'part started');
    } catch (error) {
      await closeAll(started, log).catch(() => {}); // `closeAll` has logged each part that failed to close.
      throw signal.aborted || isUsageError(error) ? error : startFailed(part, error);
    }
  }
  let closing: Promise<void> | undefined;
  return {
    close() {
      closing ??= closeAll(started, log);
      return closing;
    },
  };
}

function startFailed(part: Part, error: unknown): WeirError<'START_FAILED'> {
  return new WeirError('START_FAILED', `${part.name}: ${errorMessage(error)}`, { cause: error });
}

async function closeAll(started: readonly Part[], log: Logger): Promise<void> {
  const failed: string[] = [];
  for (const part of started.toReversed()) {
    try {
      await part.close();
      log.debug({ part: part.name }, 'part closed');
    } catch (error) {
      failed.push(part.name);
      log.error({ part: part.name, err: error }, 'part failed to close');
    }
  }
  if (failed.length > 0) throw new WeirError('CLOSE_FAILED', `failed to close: ${failed.join(', ')}`);
}
