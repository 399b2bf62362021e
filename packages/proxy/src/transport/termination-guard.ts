// Node.js 26.10 ends the process if a worker is terminated while C code calls back into its JavaScript: `node:ffi` takes V8's termination
// for an exception of the callback. So a worker marks such calls in memory that it shares with the supervisor, and the supervisor
// terminates a worker only outside of them.

/** Set by the worker while it is in a call that may call back. */
const CALLING = 1;
/** Set by the supervisor before it terminates the worker. The worker begins no such call afterwards. */
const ENDING = 2;

/** How long the supervisor waits for the end of a call. A TLS handshake, the longest call, takes a few milliseconds. */
const MAX_CALL_MS = 5_000;

/** The guard of this thread. Nobody terminates a thread that has no shared guard. */
let state = new Int32Array(createTerminationGuard());

export function createTerminationGuard(): SharedArrayBuffer {
  return new SharedArrayBuffer(Int32Array.BYTES_PER_ELEMENT);
}

/** To be called by a worker before its first guarded call. */
export function shareTerminationGuard(guard: SharedArrayBuffer): void {
  state = new Int32Array(guard);
}

/** To be called before a call that may call back. Does not return if the worker is being terminated. */
export function enterGuardedCall(): void {
  if (Atomics.or(state, 0, CALLING) !== 0) awaitTermination();
}

/** To be called after a call that may call back. Does not return if the worker is being terminated. */
export function leaveGuardedCall(): void {
  if (Atomics.and(state, 0, ~CALLING) !== CALLING) awaitTermination();
}

/** Blocks until V8 ends this thread. */
function awaitTermination(): void {
  Atomics.and(state, 0, ~CALLING);
  Atomics.notify(state, 0);
  Atomics.wait(state, 0, ENDING);
}

/**
 * To be called before `terminate` of a worker with this guard. Resolves when the worker is in no call that may call back; it will not begin
 * another one. Resolves after `MAX_CALL_MS` in any case, because a worker that hangs in such a call must end even if the process ends too.
 */
export async function untilTerminable(guard: SharedArrayBuffer): Promise<void> {
  const shared = new Int32Array(guard);
  if ((Atomics.or(shared, 0, ENDING) & CALLING) === 0) return;
  await Atomics.waitAsync(shared, 0, CALLING | ENDING, MAX_CALL_MS).value;
}

/** How long an exit of the process waits for all workers together. */
const MAX_EXIT_DELAY_MS = 1_000;

/**
 * To be called on the exit of the process, which terminates all workers. Returns when no worker with one of these guards is in a call that
 * may call back, or after `MAX_EXIT_DELAY_MS`.
 */
export function waitBeforeExit(guards: readonly SharedArrayBuffer[]): void {
  const all = guards.map((guard) => new Int32Array(guard));
  for (const shared of all) Atomics.or(shared, 0, ENDING);
  const deadline = performance.now() + MAX_EXIT_DELAY_MS;
  for (const shared of all) Atomics.wait(shared, 0, CALLING | ENDING, Math.max(0, deadline - performance.now()));
}
