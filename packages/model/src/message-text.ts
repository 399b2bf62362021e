// Functions that build parts of messages. Lists are short, because tenants read messages in `kubectl describe`.
const MAX_LISTED_ITEMS = 5;
/** The most bytes of a list. Names of nodes and hosts have up to 253 characters, and the advice after the list must not be cut off. */
const MAX_LIST_BYTES = 400;

/** Returns `a, b, c`, or `a, b and 12 more` if there are more than five items or the text would be too long. */
export function joinItems(items: readonly string[]): string {
  let bytes = 0;
  const end = items.findIndex((item, index) => {
    bytes += utf8ByteLength(item) + 2;
    return index === MAX_LISTED_ITEMS || (index > 0 && bytes > MAX_LIST_BYTES);
  });
  return end < 0 ? items.join(', ') : `${items.slice(0, end).join(', ')} and ${items.length - end} more`;
}

const MAX_QUOTED_LENGTH = 80;

/** Returns a tenant's text, cut to 80 characters, because an annotation may have 256 KiB and messages are stored in the fleet's table. */
export function shorten(text: string): string {
  // Removes half of a surrogate pair at the cut. The API server would replace this half by U+FFFD, and every comparison with the stored
  // status would find a difference.
  return text.length <= MAX_QUOTED_LENGTH
    ? text
    : `${text.slice(0, MAX_QUOTED_LENGTH).replace(/[\ud800-\udbff]$/, '')}…`;
}

/** Returns a tenant's text in quotes, cut as by `shorten`. */
export function quote(text: string): string {
  return `"${shorten(text)}"`;
}

/** The most bytes of joined sentences. The limit leaves room for a prefix in a message of 1,024 bytes. */
const MAX_SENTENCES_BYTES = 900;

/** Returns `first; second`, or `first; and 12 more` if the text would be too long, because one Service can have thousands of mistakes. */
export function joinSentences(items: readonly string[]): string {
  let bytes = 0;
  const end = items.findIndex((item, index) => {
    bytes += utf8ByteLength(item) + 2;
    return index > 0 && bytes > MAX_SENTENCES_BYTES;
  });
  return end < 0 ? items.join('; ') : [...items.slice(0, end), `and ${items.length - end} more`].join('; ');
}

/** Returns a count with its noun: `1 node`, `2 nodes`. */
export function countOf(count: number, noun: string): string {
  return `${count} ${noun}${count === 1 ? '' : 's'}`;
}

/** Returns bytes as text, rounded up: `4 MiB`, `1.5 MiB`, `300 KiB`. */
export function bytesText(bytes: number): string {
  const mebibytes = Math.ceil((bytes / 1024 / 1024) * 10) / 10;
  return mebibytes >= 1 ? `${mebibytes} MiB` : `${Math.ceil(bytes / 1024)} KiB`;
}

interface NumberedPort {
  readonly port: number;
  readonly protocol: string;
}

/** Returns `80/TCP`, as kubectl prints a port. */
export function portText(port: NumberedPort): string {
  return `${port.port}/${port.protocol}`;
}

/** Returns ports as text: `port 80/TCP`, `ports 80/TCP, 443/TCP`. */
export function portsText(ports: readonly NumberedPort[]): string {
  return `port${ports.length === 1 ? '' : 's'} ${joinItems(ports.map(portText))}`;
}

/** Returns the length of a text in bytes of UTF-8. */
export function utf8ByteLength(text: string): number {
  let bytes = 0;
  for (const character of text) bytes += codePointByteLength(character.codePointAt(0) ?? 0);
  return bytes;
}

/** Returns the length of a code point in bytes of UTF-8. */
export function codePointByteLength(codePoint: number): number {
  if (codePoint < 0x80) return 1;
  if (codePoint < 0x800) return 2;
  return codePoint < 0x10000 ? 3 : 4;
}
