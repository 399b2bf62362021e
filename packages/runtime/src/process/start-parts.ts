import { errorMessage, WeirError } from '../errors.ts';
import type { Logger } from '../log.ts';
import { isUsageError } from './exit-status.ts';

/** What a process is made of: a connection, a server, a loop. `main.ts` lists them in one array. */
export interface Part {
  readonly name: string;
  /** Resolves when the part works. Must give up once the signal is aborted; when it throws, it has cleaned up after itself. */
  start(signal: AbortSignal): Promise<void> | void;
  /** Called once, and only after `start` succeeded. */
  close(): Promise<void> | void;
}

export interface RunningParts {
  /** Closes the parts, last started first; goes on when one fails, and rejects at the end. Again: the same promise. */
  close(): Promise<void>;
}

/**
 * Starts the parts in the listed order. When one fails, or the signal is aborted between two, those that run already are closed and
 * the reason is thrown (`START_FAILED`, naming the part; a usage error as it is).
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
      await closeAll(started, log).catch(() => {}); // Each failure is logged; the reason of the start counts.
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
