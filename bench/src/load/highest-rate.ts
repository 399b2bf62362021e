/**
 * The highest rate that holds, to about 6 %: doubled from `from` until one does not, then halved in between four times.
 * Returns `from` when not even that holds, and `upTo` when nothing below fails.
 */
export async function findHighestRate(
  holds: (rate: number) => Promise<boolean>,
  { from, upTo }: { readonly from: number; readonly upTo: number },
): Promise<number> {
  let good = from;
  let bad = from * 2;
  while (bad <= upTo && (await holds(bad))) {
    good = bad;
    bad *= 2;
  }
  if (bad > upTo) return good;
  for (let step = 0; step < 4; step++) {
    const between = Math.round((good + bad) / 2);
    if (await holds(between)) good = between;
    else bad = between;
  }
  return good;
}
