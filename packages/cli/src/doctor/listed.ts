const MAX_LISTED_ITEMS = 10;

/** `a, b and 12 more`: a cluster has more of everything than a line can hold. */
export function joinList(items: readonly string[], most: number = MAX_LISTED_ITEMS): string {
  if (items.length <= most) return items.join(', ');
  return `${items.slice(0, most).join(', ')} and ${items.length - most} more`;
}

/** `1 node`, `2 nodes`. */
export function pluralize(count: number, noun: string): string {
  return `${count} ${noun}${count === 1 ? '' : 's'}`;
}
