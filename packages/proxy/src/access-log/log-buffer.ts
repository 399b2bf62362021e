// The lines of the access logs in one worker that the main thread has not taken yet. The memory is bounded, and so is the
// share of each tenant: a tenant that logs too much loses its own lines first.

/** The memory for lines in each worker that writes access logs. */
const CAPACITY_BYTES = 262_144;
/** The lines are sent at once when they take this many bytes. */
const EAGER_FLUSH_BYTES = 65_536;
const FLUSH_INTERVAL_MS = 100;
/** The values of the shared flag: whether the main thread has written the last chunk (`TAKEN`) or not (`SENT`). */
const TAKEN = 0;
const SENT = 1;

/** Complete lines in the order in which they were written. */
export interface LogChunk {
  readonly bytes: Uint8Array;
  /** Consecutive lines of one Service end at `end`. */
  readonly runs: readonly LogRun[];
}

export interface LogRun {
  /** `NAMESPACE/NAME` of the Service. */
  readonly service: string;
  end: number;
}

/** Creates the memory of the flag that a worker and the main thread share. */
export function createLogFlag(): SharedArrayBuffer {
  return new SharedArrayBuffer(Int32Array.BYTES_PER_ELEMENT);
}

/** Lets the worker send its next chunk. Called on the main thread when a chunk has been written. */
export function takeNextChunk(flag: SharedArrayBuffer): void {
  Atomics.store(new Int32Array(flag), 0, TAKEN);
}

export interface LogBufferOptions {
  readonly flag: SharedArrayBuffer;
  send(chunk: LogChunk): void;
}

/**
 * Collects lines and sends them in chunks: every 100 ms, or earlier if there are many. A chunk is sent only after the
 * last one was taken, so the main thread's queue is bounded too.
 */
export class LogBuffer {
  readonly #options: LogBufferOptions;
  readonly #flag: Int32Array;
  /** Allocated for the first line, because most workers write no access log. */
  #memory: Uint8Array | undefined;
  #used = 0;
  #runs: LogRun[] = [];
  /** Bytes in the buffer by tenant. At most one entry per line in the buffer. */
  readonly #bytesByTenant = new Map<string, number>();
  #timer: NodeJS.Timeout | undefined;

  constructor(options: LogBufferOptions) {
    this.#options = options;
    this.#flag = new Int32Array(options.flag);
  }

  /**
   * Copies the first `length` bytes of `line`, which end with a newline. Returns false if the line is dropped. A tenant
   * may use as many bytes of the buffer as are free, so one tenant fills at most half of the buffer, and n tenants
   * leave at least 1/(n+1) of the buffer to other tenants (dynamic thresholds, Choudhury and Hahne 1998).
   */
  add(line: Uint8Array, length: number, owner: { readonly tenant: string; readonly service: string }): boolean {
    const tenantBytes = (this.#bytesByTenant.get(owner.tenant) ?? 0) + length;
    if (tenantBytes > CAPACITY_BYTES - this.#used) return false;
    this.#memory ??= new Uint8Array(CAPACITY_BYTES);
    this.#memory.set(line.subarray(0, length), this.#used);
    this.#used += length;
    this.#bytesByTenant.set(owner.tenant, tenantBytes);
    const run = this.#runs.at(-1);
    if (run?.service === owner.service) run.end = this.#used;
    else this.#runs.push({ service: owner.service, end: this.#used });
    if (this.#used >= EAGER_FLUSH_BYTES) this.flush();
    if (this.#used > 0) this.#timer ??= setTimeout(() => this.#onTimer(), FLUSH_INTERVAL_MS).unref();
    return true;
  }

  /** Sends all lines, unless the main thread still works on the last chunk. */
  flush(): void {
    if (this.#used === 0 || Atomics.load(this.#flag, 0) === SENT) return;
    Atomics.store(this.#flag, 0, SENT);
    const chunk = { bytes: (this.#memory as Uint8Array).slice(0, this.#used), runs: this.#runs };
    this.#used = 0;
    this.#runs = [];
    this.#bytesByTenant.clear();
    this.#options.send(chunk);
  }

  #onTimer(): void {
    this.#timer = undefined;
    this.flush();
    if (this.#used > 0) this.#timer = setTimeout(() => this.#onTimer(), FLUSH_INTERVAL_MS).unref();
  }
}
