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
  /** Takes one JSON line per entry; absent: stderr, so that stdout belongs to what a command prints. */
  readonly destination?: { write(line: string): void };
}

/** The logger of a process; each part takes `log.child({ part: 'follow' })`. Messages are constant, values go into fields. */
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
  // Synchronous: what is logged just before the process exits is what one looks for afterwards.
  return pino(options, destination ?? pino.destination({ dest: 2, sync: true }));
}

/** For tests, and for code whose log nobody asked for. */
export function silentLogger(): Logger {
  return pino({ level: 'silent' });
}

export function logLevel(variable: string): Setting<LogLevel> {
  return oneOf(variable, LOG_LEVELS, { default: 'info' });
}

/**
 * Only these fields. The serializer that comes with pino copies every property of an error, and libraries hang requests on them:
 * ioredis the arguments of the failed command, passwords of AUTH included.
 */
function serializeError(thrown: unknown): object {
  if (!(thrown instanceof Error)) return { message: errorMessage(thrown) };
  const code = 'code' in thrown && typeof thrown.code === 'string' ? { code: thrown.code } : {};
  const said = { type: thrown.name, ...code, message: errorMessage(thrown) };
  // A full disk or an absent Redis is for whoever runs Weir, a stack for whoever writes it.
  return thrown instanceof WeirError || 'syscall' in thrown ? said : { ...said, stack: thrown.stack };
}
