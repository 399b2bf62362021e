/**
 * The 16 bytes of an IPv6 address in network order, from its text in any form of RFC 4291, 2.2 (`::`, a trailing IPv4). The
 * text must be known to be such an address, without a zone; of another the bytes mean nothing.
 */
export function ipv6Bytes(text: string): Uint8Array {
  const [head = '', tail] = text.split('::');
  const before = groupBytes(head);
  const after = tail === undefined ? [] : groupBytes(tail);
  const bytes = new Uint8Array(16);
  bytes.set(before);
  bytes.set(after, 16 - after.length);
  return bytes;
}

function groupBytes(text: string): number[] {
  if (text === '') return [];
  return text.split(':').flatMap((group) => {
    if (group.includes('.')) return group.split('.').map(Number);
    const value = Number.parseInt(group, 16);
    return [value >> 8, value & 0xff];
  });
}
