// The subset of DER (ITU-T X.690) that a certificate needs.

export const sequence = (...parts: readonly Buffer[]): Buffer => taggedValue(0x30, ...parts);
export const setOf = (...parts: readonly Buffer[]): Buffer => taggedValue(0x31, ...parts);
export const utf8String = (text: string): Buffer => taggedValue(0x0c, Buffer.from(text));
export const octetString = (bytes: Buffer): Buffer => taggedValue(0x04, bytes);
export const booleanTrue: Buffer = taggedValue(0x01, Buffer.from([0xff]));
export const nullValue: Buffer = taggedValue(0x05);
/** Encodes a bit string whose last octet has `unused` unused bits. */
export const bitString = (bytes: Buffer, unused = 0): Buffer => taggedValue(0x03, Buffer.from([unused]), bytes);

/** Encodes a big-endian integer greater than zero. */
export function positiveInteger(bytes: Buffer): Buffer {
  const isNegative = ((bytes[0] ?? 0) & 0x80) !== 0;
  return taggedValue(0x02, Buffer.from(isNegative ? [0] : []), bytes);
}

/** Encodes an object identifier such as `2.5.29.17`. */
export function objectIdentifier(dotted: string): Buffer {
  const [first = 0, second = 0, ...rest] = dotted.split('.').map(Number);
  return taggedValue(0x06, Buffer.from([first * 40 + second, ...rest.flatMap(base128)]));
}

/** Encodes a time in whole seconds. RFC 5280, 4.1.2.5 requires a two-digit year through 2049. */
export function time(date: Date): Buffer {
  const digits = `${date.toISOString().replaceAll(/[-:T]|\..*/g, '')}Z`;
  return date.getUTCFullYear() < 2050
    ? taggedValue(0x17, Buffer.from(digits.slice(2)))
    : taggedValue(0x18, Buffer.from(digits));
}

/** Encodes a time in whole seconds with a four-digit year. */
export function generalizedTime(date: Date): Buffer {
  return taggedValue(0x18, Buffer.from(`${date.toISOString().replaceAll(/[-:T]|\..*/g, '')}Z`));
}

export function taggedValue(tag: number, ...parts: readonly Buffer[]): Buffer {
  const content = Buffer.concat(parts);
  return Buffer.concat([Buffer.from([tag, ...lengthOctets(content.length)]), content]);
}

function lengthOctets(length: number): number[] {
  if (length < 0x80) return [length];
  return length < 0x100 ? [0x81, length] : [0x82, length >> 8, length & 0xff];
}

function base128(number: number): number[] {
  const digits = [number & 0x7f];
  for (let rest = number >> 7; rest > 0; rest >>= 7) digits.unshift(0x80 | (rest & 0x7f));
  return digits;
}
