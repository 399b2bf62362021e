// Words for messages. Tenants read them in `kubectl describe`, so lists are short.
const MAX_LISTED_ITEMS = 5;
/** Names of nodes and hosts have up to 253 letters, and what is to be done stands after the list. */
const MAX_LIST_BYTES = 400;

/** `a, b, c`, and after five of them, or where they are long after fewer, `and 12 more`. */
export function joinItems(items: readonly string[]): string {
  let bytes = 0;
  const end = items.findIndex((item, index) => {
    bytes += utf8ByteLength(item) + 2;
    return index === MAX_LISTED_ITEMS || (index > 0 && bytes > MAX_LIST_BYTES);
  });
  return end < 0 ? items.join(', ') : `${items.slice(0, end).join(', ')} and ${items.length - end} more`;
}

const MAX_QUOTED_LENGTH = 80;

/** What a tenant wrote, cut: it may be a quarter of a megabyte, and stands in the table of the fleet. */
export function shorten(text: string): string {
  // Half a character would come back from an API server as another one, and every status would look changed.
  return text.length <= MAX_QUOTED_LENGTH
    ? text
    : `${text.slice(0, MAX_QUOTED_LENGTH).replace(/[\ud800-\udbff]$/, '')}…`;
}

/** The same in quotes. */
export function quote(text: string): string {
  return `"${shorten(text)}"`;
}

/** Leaves room in a message of 1,024 bytes for what is said around them. */
const MAX_SENTENCES_BYTES = 900;

/** `this; that`, and where that would be too long `this; and 12 more`: a tenant can make thousands of mistakes. */
export function joinSentences(items: readonly string[]): string {
  let bytes = 0;
  const end = items.findIndex((item, index) => {
    bytes += utf8ByteLength(item) + 2;
    return index > 0 && bytes > MAX_SENTENCES_BYTES;
  });
  return end < 0 ? items.join('; ') : [...items.slice(0, end), `and ${items.length - end} more`].join('; ');
}

/** `1 node`, `2 nodes`. */
export function countOf(count: number, noun: string): string {
  return `${count} ${noun}${count === 1 ? '' : 's'}`;
}

interface NumberedPort {
  readonly port: number;
  readonly protocol: string;
}

/** `80/TCP`, as kubectl prints it. */
export function portText(port: NumberedPort): string {
  return `${port.port}/${port.protocol}`;
}

/** `port 80/TCP`, `ports 80/TCP, 443/TCP`. */
export function portsText(ports: readonly NumberedPort[]): string {
  return `port${ports.length === 1 ? '' : 's'} ${joinItems(ports.map(portText))}`;
}

/** How many bytes the text takes in UTF-8. */
export function utf8ByteLength(text: string): number {
  let bytes = 0;
  for (const character of text) bytes += codePointByteLength(character.codePointAt(0) ?? 0);
  return bytes;
}

/** How many bytes a code point takes in UTF-8. */
export function codePointByteLength(codePoint: number): number {
  if (codePoint < 0x80) return 1;
  if (codePoint < 0x800) return 2;
  return codePoint < 0x10000 ? 3 : 4;
}
