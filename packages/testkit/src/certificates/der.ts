// As much of DER (ITU-T X.690) as a certificate takes.

export const sequence = (...parts: readonly Buffer[]): Buffer => tagged(0x30, ...parts);
export const set = (...parts: readonly Buffer[]): Buffer => tagged(0x31, ...parts);
export const utf8 = (text: string): Buffer => tagged(0x0c, Buffer.from(text));
export const octets = (bytes: Buffer): Buffer => tagged(0x04, bytes);
export const yes: Buffer = tagged(0x01, Buffer.from([0xff]));
export const nothing: Buffer = tagged(0x05);
/** Bits, of which the last octet leaves some unused. */
export const bits = (bytes: Buffer, unused = 0): Buffer => tagged(0x03, Buffer.from([unused]), bytes);

/** Of digits that stand for a number above zero. */
export function integer(bytes: Buffer): Buffer {
  const isNegative = ((bytes[0] ?? 0) & 0x80) !== 0;
  return tagged(0x02, Buffer.from(isNegative ? [0] : []), bytes);
}

/** `2.5.29.17` */
export function identifier(dotted: string): Buffer {
  const [first = 0, second = 0, ...rest] = dotted.split('.').map(Number);
  return tagged(0x06, Buffer.from([first * 40 + second, ...rest.flatMap(inSevens)]));
}

/** In whole seconds; RFC 5280, 4.1.2.5: two digits for the year until 2049. */
export function time(date: Date): Buffer {
  const digits = `${date.toISOString().replaceAll(/[-:T]|\..*/g, '')}Z`;
  return date.getUTCFullYear() < 2050 ? tagged(0x17, Buffer.from(digits.slice(2))) : tagged(0x18, Buffer.from(digits));
}

export function tagged(tag: number, ...parts: readonly Buffer[]): Buffer {
  const content = Buffer.concat(parts);
  return Buffer.concat([Buffer.from([tag, ...lengthOf(content.length)]), content]);
}

function lengthOf(length: number): number[] {
  if (length < 0x80) return [length];
  return length < 0x100 ? [0x81, length] : [0x82, length >> 8, length & 0xff];
}

function inSevens(number: number): number[] {
  const digits = [number & 0x7f];
  for (let rest = number >> 7; rest > 0; rest >>= 7) digits.unshift(0x80 | (rest & 0x7f));
  return digits;
}
