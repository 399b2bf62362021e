/** A longer text never counts as a misspelled name, because the comparison takes quadratic time. */
const MAX_NAME_LENGTH = 100;
/** The minimum length of a text that may stand for a name that contains the text. A shorter text is part of too many names. */
const MIN_PART_LENGTH = 5;

/**
 * Returns the candidate that `name` probably misspells, for "did you mean …?". This is the candidate with the fewest changed letters
 * (optimal string alignment distance, at most a quarter of the letters), or the only candidate that contains `name`. Ignores case.
 */
export function closestName(name: string, candidates: readonly string[]): string | undefined {
  if (name.length > MAX_NAME_LENGTH) return undefined;
  const wanted = name.toLowerCase();
  let closest: { readonly candidate: string; readonly distance: number } | undefined;
  for (const candidate of candidates) {
    const distance = alignmentDistance(wanted, candidate.toLowerCase());
    const limit = Math.max(1, Math.floor(Math.max(name.length, candidate.length) / 4));
    if (distance <= limit && distance < (closest?.distance ?? Number.POSITIVE_INFINITY))
      closest = { candidate, distance };
  }
  if (closest !== undefined || name.length < MIN_PART_LENGTH) return closest?.candidate;
  const containing = candidates.filter((candidate) => candidate.toLowerCase().includes(wanted));
  return containing.length === 1 ? containing[0] : undefined;
}

/** Counts the insertions, deletions, replacements and exchanges of neighbours that turn one text into the other. */
function alignmentDistance(a: string, b: string): number {
  let beforePrevious: number[] = [];
  let previous = Array.from({ length: b.length + 1 }, (_, j) => j);
  for (let i = 1; i <= a.length; i += 1) {
    const current = [i];
    for (let j = 1; j <= b.length; j += 1) {
      const replaced = (previous[j - 1] ?? 0) + Number(a[i - 1] !== b[j - 1]);
      let least = Math.min((previous[j] ?? 0) + 1, (current[j - 1] ?? 0) + 1, replaced);
      if (i > 1 && j > 1 && a[i - 1] === b[j - 2] && a[i - 2] === b[j - 1])
        least = Math.min(least, (beforePrevious[j - 2] ?? 0) + 1);
      current.push(least);
    }
    beforePrevious = previous;
    previous = current;
  }
  return previous[b.length] ?? 0;
}
