const MOST = 10;

/** `a, b and 12 more`: a cluster has more of everything than a line can hold. */
export function listed(items: readonly string[], most: number = MOST): string {
  if (items.length <= most) return items.join(', ');
  return `${items.slice(0, most).join(', ')} and ${items.length - most} more`;
}

/** `1 node`, `2 nodes`. */
export function counted(count: number, noun: string): string {
  return `${count} ${noun}${count === 1 ? '' : 's'}`;
}
