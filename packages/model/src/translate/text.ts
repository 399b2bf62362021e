// Words for messages. Tenants read them in `kubectl describe`, so lists are short.
import { utf8LengthOf } from '../utf8.ts';

const LISTED = 5;
/** Names of nodes and hosts have up to 253 letters, and what is to be done stands after the list. */
const LISTED_BYTES = 400;

/** `a, b, c`, and after five of them, or where they are long after fewer, `and 12 more`. */
export function listed(items: readonly string[]): string {
  let bytes = 0;
  const end = items.findIndex((item, index) => {
    bytes += utf8LengthOf(item) + 2;
    return index === LISTED || (index > 0 && bytes > LISTED_BYTES);
  });
  return end < 0 ? items.join(', ') : `${items.slice(0, end).join(', ')} and ${items.length - end} more`;
}

const QUOTED = 80;

/** What a tenant wrote, cut: it may be a quarter of a megabyte, and stands in the table of the fleet. */
export function cut(text: string): string {
  // Half a character would come back from an API server as another one, and every status would look changed.
  return text.length <= QUOTED ? text : `${text.slice(0, QUOTED).replace(/[\ud800-\udbff]$/, '')}…`;
}

/** The same in quotes. */
export function quoted(text: string): string {
  return `"${cut(text)}"`;
}

/** Leaves room in a message of 1,024 bytes for what is said around them. */
const SENTENCES_BYTES = 900;

/** `this; that`, and where that would be too long `this; and 12 more`: a tenant can make thousands of mistakes. */
export function sentences(items: readonly string[]): string {
  let bytes = 0;
  const end = items.findIndex((item, index) => {
    bytes += utf8LengthOf(item) + 2;
    return index > 0 && bytes > SENTENCES_BYTES;
  });
  return end < 0 ? items.join('; ') : [...items.slice(0, end), `and ${items.length - end} more`].join('; ');
}

/** `1 node`, `2 nodes`. */
export function counted(count: number, noun: string): string {
  return `${count} ${noun}${count === 1 ? '' : 's'}`;
}

interface PortName {
  readonly port: number;
  readonly protocol: string;
}

/** `80/TCP`, as kubectl prints it. */
export function portText(port: PortName): string {
  return `${port.port}/${port.protocol}`;
}

/** `port 80/TCP`, `ports 80/TCP, 443/TCP`. */
export function portsText(ports: readonly PortName[]): string {
  return `port${ports.length === 1 ? '' : 's'} ${listed(ports.map(portText))}`;
}
