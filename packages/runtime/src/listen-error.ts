import { errorMessage } from './error-message.ts';
import { WeirError } from './weir-error.ts';

const LISTEN_ERROR_REASONS: Readonly<Record<string, string>> = {
  EADDRINUSE: 'the port is in use by another process',
  EADDRNOTAVAIL: 'this host has no such address',
  EACCES: 'this process may not bind it (a port below 1024 needs CAP_NET_BIND_SERVICE)',
  ENOTFOUND: 'the name cannot be resolved',
};

export interface ListenErrorOptions {
  /** What was to be bound, as the user wrote it. */
  readonly address: string;
  /** What to do about it: `set WEIR_ADMIN to a free HOST:PORT or off`. */
  readonly advice: string;
}

/** Why a server could not listen: what, where, and what to do. */
export function listenError(cause: unknown, { address, advice }: ListenErrorOptions): WeirError<'LISTEN_FAILED'> {
  const code = cause instanceof Error && 'code' in cause ? String(cause.code) : '';
  const reason = LISTEN_ERROR_REASONS[code] ?? errorMessage(cause);
  return new WeirError('LISTEN_FAILED', `cannot listen on ${address}: ${reason}; ${advice}`, { cause });
}
