let iteration = 1;
let isWatched = false;

/** A number that is another one in each turn of the event loop. */
export function currentLoopIteration(): number {
  if (!isWatched) {
    isWatched = true;
    setImmediate(endIteration);
  }
  return iteration;
}

function endIteration(): void {
  isWatched = false;
  iteration += 1;
}
