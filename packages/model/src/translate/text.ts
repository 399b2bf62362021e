// Words for messages. Tenants read them in `kubectl describe`, so lists are short.

const LISTED = 5;

/** `a, b, c`, and after five of them `and 12 more`. */
export function listed(items: readonly string[]): string {
  const shown = items.slice(0, LISTED).join(', ');
  return items.length <= LISTED ? shown : `${shown} and ${items.length - LISTED} more`;
}

const QUOTED = 80;

/** What a tenant wrote, in quotes and cut: it may be a quarter of a megabyte, and stands in the table of the fleet. */
export function quoted(text: string): string {
  return text.length <= QUOTED ? `"${text}"` : `"${text.slice(0, QUOTED)}…"`;
}

/** `1 node`, `2 nodes`. */
export function counted(count: number, noun: string): string {
  return `${count} ${noun}${count === 1 ? '' : 's'}`;
}

/** `80/TCP`, as kubectl prints it. */
export function portText(port: { readonly port: number; readonly protocol: string }): string {
  return `${port.port}/${port.protocol}`;
}
