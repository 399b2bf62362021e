// Counts the units of work of this thread, such as events of sockets. The supervisor ends a worker that makes no progress.

/** Only this thread writes the counter, so no atomic operation is needed. */
let counter: Int32Array = new Int32Array(1);

/** Makes this thread count its progress in `shared`. */
export function countProgressIn(shared: Int32Array<SharedArrayBuffer>): void {
  counter = shared;
}

export function countProgress(): void {
  counter[0] = (counter[0] as number) + 1;
}
