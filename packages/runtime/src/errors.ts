/**
 * A failure of the environment (network, disk, Redis, Kubernetes API). A tenant's invalid object is a `Problem`, never
 * a `WeirError`. `Code` is the union of all error codes of the package that throws, so that a handler can switch
 * exhaustively.
 */
export class WeirError<Code extends string = string> extends Error {
  readonly code: Code;

  constructor(code: Code, message: string, options: { readonly cause?: unknown } = {}) {
    super(message, options);
    this.name = new.target.name;
    this.code = code;
  }
}

/** A wrong command line or environment. The process prints the message without a stack and exits with code 2. */
export class UsageError extends WeirError<'USAGE'> {
  constructor(message: string, options: { readonly cause?: unknown } = {}) {
    super('USAGE', message, options);
  }
}

export type RuntimeErrorCode =
  | 'CONFIG_INVALID'
  | 'USAGE'
  | 'START_FAILED'
  | 'CLOSE_FAILED'
  | 'LISTEN_FAILED'
  | 'FILE_FAILED';

/** Every error code of this package with its meaning; a test compares `docs/errors.md` with this table. */
export const RUNTIME_ERRORS: Readonly<Record<RuntimeErrorCode, string>> = {
  CONFIG_INVALID: 'A setting has a wrong value, or a required one is missing; the message lists all mistakes.',
  USAGE: 'The command line is wrong.',
  START_FAILED: 'A part of the process could not start; the message names it and the reason.',
  CLOSE_FAILED: 'A part of the process could not be closed; the log has the reason.',
  LISTEN_FAILED: 'A server cannot listen on its address.',
  FILE_FAILED: 'Weir cannot read, write or create a file or directory.',
};

const MAX_CAUSE_DEPTH = 8;
const MAX_MESSAGE_CHARACTERS = 2_000;

/**
 * Formats any thrown value as one line: its message, then the messages of its causes, without a stack. Never throws and
 * always ends. Replaces control characters by spaces, because a message may quote bytes of a peer, and a terminal would
 * interpret control characters.
 */
export function errorMessage(thrown: unknown): string {
  const messages: string[] = [];
  let current = thrown;
  for (let depth = 0; depth < MAX_CAUSE_DEPTH && current !== undefined && current !== null; depth += 1) {
    const message = onOneLine(messageWithoutCauses(current));
    // Skips a repeated message, because many libraries include the message of the cause in their own message.
    if (message !== '' && !messages.some((earlier) => earlier.includes(message))) messages.push(message);
    current = current instanceof Error ? current.cause : undefined;
  }
  const line = messages.join(': ') || 'unknown error';
  return line.length <= MAX_MESSAGE_CHARACTERS ? line : `${line.slice(0, MAX_MESSAGE_CHARACTERS - 1)}…`;
}

function messageWithoutCauses(thrown: unknown): string {
  // If all addresses of a host name fail, `net.connect` reports an AggregateError with an empty message.
  if (thrown instanceof AggregateError && thrown.message === '') {
    return [
      ...new Set(thrown.errors.slice(0, MAX_CAUSE_DEPTH).map((error: unknown) => messageWithoutCauses(error))),
    ].join(', ');
  }
  if (thrown instanceof Error) return thrown.message || errorCode(thrown) || thrown.name;
  return typeof thrown === 'string' ? thrown : describeValue(thrown);
}

function errorCode(error: Error): string | undefined {
  return 'code' in error && typeof error.code === 'string' ? error.code : undefined;
}

function describeValue(thrown: unknown): string {
  if (typeof thrown !== 'object' || thrown === null) return String(thrown);
  if ('message' in thrown && typeof thrown.message === 'string') return thrown.message;
  try {
    return JSON.stringify(thrown) ?? 'unknown error';
  } catch {
    return 'unknown error';
  }
}

function onOneLine(text: string): string {
  return text.replace(/[\p{Cc}\s]+/gu, ' ').trim();
}

/**
 * Reports whether `error` is only the effect of aborting `signal`: the signal's reason, or the AbortError that Node's
 * functions throw.
 */
export function isAbort(error: unknown, signal: AbortSignal): boolean {
  return signal.aborted && (error === signal.reason || (error instanceof Error && error.name === 'AbortError'));
}

export type FileOperation = 'read' | 'write' | 'create';

const FILE_ERROR_ADVICE: Readonly<Record<string, string>> = {
  ENOENT: 'its directory does not exist; create it',
  EACCES: 'permission denied; give this user access, or choose another path',
  EPERM: 'permission denied; give this user access, or choose another path',
  EROFS: 'the file system is read-only; mount a writable volume there, or choose another path',
  ENOSPC: 'the disk is full; free some space',
  EDQUOT: 'the disk quota is used up; free some space',
  EISDIR: 'the path is a directory; name a file',
  ENOTDIR: 'a part of the path is a file; choose another path',
  EEXIST: 'a file with this name already exists; remove the file, or choose another path',
  EMFILE: 'this process has too many open files; raise its limit',
};

/** Returns the error of a failed file operation. Its message has the operation, the path, and what the user can do. */
export function fileError(cause: unknown, verb: FileOperation, path: string): WeirError<'FILE_FAILED'> {
  const code = cause instanceof Error && 'code' in cause ? String(cause.code) : '';
  const isMissing = code === 'ENOENT' && verb === 'read';
  const advice = isMissing ? 'the file does not exist; check the path' : FILE_ERROR_ADVICE[code];
  return new WeirError('FILE_FAILED', `cannot ${verb} ${path}: ${advice ?? errorMessage(cause)}`, { cause });
}

const LISTEN_ERROR_REASONS: Readonly<Record<string, string>> = {
  EADDRINUSE: 'the port is in use by another process',
  EADDRNOTAVAIL: 'this host has no such address',
  EACCES: 'permission denied (a port below 1024 needs CAP_NET_BIND_SERVICE)',
  ENOTFOUND: 'the host name cannot be resolved',
};

export interface ListenErrorOptions {
  /** The listen address as the user wrote it. */
  readonly address: string;
  /** What the user can do, such as `set WEIR_ADMIN to a free HOST:PORT or off`. */
  readonly advice: string;
}

/**
 * Returns the error of a failed attempt to listen. Its message has the address, the reason, and what the user can do.
 */
export function listenError(cause: unknown, { address, advice }: ListenErrorOptions): WeirError<'LISTEN_FAILED'> {
  const code = cause instanceof Error && 'code' in cause ? String(cause.code) : '';
  const reason = LISTEN_ERROR_REASONS[code] ?? errorMessage(cause);
  return new WeirError('LISTEN_FAILED', `cannot listen on ${address}: ${reason}; ${advice}`, { cause });
}
