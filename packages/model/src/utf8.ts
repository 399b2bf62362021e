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
