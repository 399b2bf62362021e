let turn = 1;
let isWatched = false;

/** A number that is another one in each turn of the event loop. */
export function thisTurn(): number {
  if (!isWatched) {
    isWatched = true;
    setImmediate(endTurn);
  }
  return turn;
}

function endTurn(): void {
  isWatched = false;
  turn += 1;
}
