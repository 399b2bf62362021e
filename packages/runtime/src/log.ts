import { type Logger as PinoLogger, pino } from 'pino';
import type { Setting } from './config/parse-config.ts';
import { oneOf } from './config/settings.ts';
import { errorMessage, UsageError, WeirError } from './errors.ts';

export type Logger = PinoLogger;

export const LOG_LEVELS = ['fatal', 'error', 'warn', 'info', 'debug', 'trace', 'silent'] as const;
export type LogLevel = (typeof LOG_LEVELS)[number];

export interface LoggerOptions {
  readonly name: string;
  readonly level: LogLevel;
  /** Takes one JSON line per log entry. Default: stderr, because stdout is for the output of commands. */
  readonly destination?: { write(line: string): void };
}

/** Creates the logger of a process; each component uses a child such as `log.child({ part: 'follow' })`. */
export function createLogger({ name, level, destination }: LoggerOptions): Logger {
  if (!LOG_LEVELS.includes(level))
    throw new UsageError(`log level "${level}" is unknown; use one of ${LOG_LEVELS.join(', ')}`);
  const options = {
    name,
    level,
    timestamp: pino.stdTimeFunctions.isoTime,
    formatters: { level: (label: string) => ({ level: label }) },
    serializers: { err: serializeError },
  };
  // Writes synchronously, so that the last entries before the process exits are not lost.
  return pino(options, destination ?? pino.destination({ dest: 2, sync: true }));
}

/** A logger that discards every entry. */
export function silentLogger(): Logger {
  return pino({ level: 'silent' });
}

export function logLevel(variable: string): Setting<LogLevel> {
  return oneOf(variable, LOG_LEVELS, { default: 'info' });
}

/**
 * Returns the fields of an error that are logged. Replaces pino's own serializer, because pino's serializer logs every property of an
 * error: errors of ioredis have the arguments of the failed command, including the password of AUTH.
 */
function serializeError(thrown: unknown): object {
  if (!(thrown instanceof Error)) return { message: errorMessage(thrown) };
  const code = 'code' in thrown && typeof thrown.code === 'string' ? { code: thrown.code } : {};
  const fields = { type: thrown.name, ...code, message: errorMessage(thrown) };
  // A stack helps with a bug of Weir, but not with a failure of the environment such as a full disk.
  return thrown instanceof WeirError || 'syscall' in thrown ? fields : { ...fields, stack: thrown.stack };
}
