// Parts of messages. Tenants read them in `kubectl describe`, so lists are short.
const MAX_LISTED_ITEMS = 5;
/** The most bytes of a list: names of nodes and hosts have up to 253 characters, and the advice after the list must not be cut off. */
const MAX_LIST_BYTES = 400;

/** `a, b, c`, or `a, b and 12 more` if there are more than five items or the text would be too long. */
export function joinItems(items: readonly string[]): string {
  let bytes = 0;
  const end = items.findIndex((item, index) => {
    bytes += utf8ByteLength(item) + 2;
    return index === MAX_LISTED_ITEMS || (index > 0 && bytes > MAX_LIST_BYTES);
  });
  return end < 0 ? items.join(', ') : `${items.slice(0, end).join(', ')} and ${items.length - end} more`;
}

const MAX_QUOTED_LENGTH = 80;

/** A tenant's text, cut to 80 characters: an annotation may have 256 KiB, and the message is stored in the fleet's table. */
export function shorten(text: string): string {
  // An API server replaces half a surrogate pair by U+FFFD, and then every status would look changed.
  return text.length <= MAX_QUOTED_LENGTH
    ? text
    : `${text.slice(0, MAX_QUOTED_LENGTH).replace(/[\ud800-\udbff]$/, '')}…`;
}

/** A tenant's text, cut as by `shorten`, in quotes. */
export function quote(text: string): string {
  return `"${shorten(text)}"`;
}

/** The most bytes of joined sentences, which leaves room for a prefix in a message of 1,024 bytes. */
const MAX_SENTENCES_BYTES = 900;

/** `first; second`, or `first; and 12 more` if that is too long: one Service can have thousands of mistakes. */
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

/** The length of a text in UTF-8, in bytes. */
export function utf8ByteLength(text: string): number {
  let bytes = 0;
  for (const character of text) bytes += codePointByteLength(character.codePointAt(0) ?? 0);
  return bytes;
}

/** The length of a code point in UTF-8, in bytes. */
export function codePointByteLength(codePoint: number): number {
  if (codePoint < 0x80) return 1;
  if (codePoint < 0x800) return 2;
  return codePoint < 0x10000 ? 3 : 4;
}
