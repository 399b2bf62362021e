// Decides how many bytes the connections of a tenant may buffer, so that no tenant can use up the memory of the worker
// with connections whose peers do not read.
import type { Window } from '../transport/tcp-transport.ts';
import type { Limiter } from './limiter.ts';

/** A tenant's share: how many bytes its connections may buffer in one worker with full windows. */
export const MAX_TENANT_BYTES = 33_554_432;
/** How many bytes the connections of all tenants may buffer in one worker before every share becomes `MIN_TENANT_BYTES`. */
export const MAX_WORKER_BYTES = 268_435_456;
export const MIN_TENANT_BYTES = 4_194_304;
/** A tenant that buffers more than this many shares has small windows. */
export const SHARES_WITH_REDUCED_WINDOWS = 2;
/** A connection that buffers fewer bytes is not measured. A connection with a small window buffers about as many. */
export const MAX_UNMEASURED_BYTES = 16_384;
/** Relayed bytes count as buffered up to this number, until they are measured. */
export const MAX_ASSUMED_BYTES = 65_536;

/** The bytes that all connections of a worker buffer. */
export class WorkerBuffers {
  bytes = 0;

  /** Returns the buffers of the tenant with this limiter. */
  of(tenant: Limiter): TenantBuffers {
    tenant.buffers ??= new TenantBuffers(this);
    return tenant.buffers;
  }
}

/** The bytes that the connections of one tenant buffer in one worker. */
export class TenantBuffers {
  readonly #worker: WorkerBuffers;
  #bytes = 0;
  #window: Window = 'full';

  constructor(worker: WorkerBuffers) {
    this.#worker = worker;
  }

  /** The window of the tenant's connections. */
  get window(): Window {
    return this.#window;
  }

  /** Adds bytes, or subtracts them if `change` is negative. */
  add(change: number): void {
    this.#bytes += change;
    this.#worker.bytes += change;
    const share = this.#worker.bytes > MAX_WORKER_BYTES ? MIN_TENANT_BYTES : MAX_TENANT_BYTES;
    this.#window = nextWindow(this.#window, this.#bytes / share);
  }
}

/**
 * Returns the window for a tenant that buffers `shares` times its share. A window grows only below half of the bytes at
 * which it shrank.
 */
function nextWindow(window: Window, shares: number): Window {
  if (shares > SHARES_WITH_REDUCED_WINDOWS) return 'small';
  if (window === 'small' && shares > SHARES_WITH_REDUCED_WINDOWS / 2) return 'small';
  if (shares > 1) return 'reduced';
  return window === 'full' || shares < 0.5 ? 'full' : 'reduced';
}
