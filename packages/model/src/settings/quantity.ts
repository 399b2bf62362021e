// Parses Kubernetes quantities (`10Ti`, `1.5G`, `2e9`) exactly, because floating-point arithmetic would turn `1.005k` into
// 1004.9999999999999.
const DECIMAL: Readonly<Record<string, number>> = { n: -9, u: -6, m: -3, '': 0, k: 3, M: 6, G: 9, T: 12, P: 15, E: 18 };
const BINARY: Readonly<Record<string, bigint>> = { Ki: 10n, Mi: 20n, Gi: 30n, Ti: 40n, Pi: 50n, Ei: 60n };
const QUANTITY = /^\+?(\d+)?(?:\.(\d*))?(?:([numkMGTPE]|[KMGTPE]i)|[eE]([+-]?\d{1,3}))?$/;

export type ParsedQuantity =
  | { readonly kind: 'whole'; readonly value: number }
  | { readonly kind: 'fraction' }
  /** The value exceeds 2^53 − 1, so counters would not be exact. */
  | { readonly kind: 'too-large' }
  | { readonly kind: 'malformed' };

/** Returns the whole number that a quantity stands for, or why the quantity is not such a number. */
export function parseQuantity(text: string): ParsedQuantity {
  const match = QUANTITY.exec(text);
  if (match === null) return { kind: 'malformed' };
  const [, whole = '', fraction = '', suffix = '', exponent] = match;
  if (whole === '' && fraction === '') return { kind: 'malformed' };
  const digits = BigInt(whole + fraction);
  const binary = BINARY[suffix];
  const ten = (binary === undefined ? Number(exponent ?? DECIMAL[suffix]) : 0) - fraction.length;
  const scaled = digits * (binary === undefined ? 1n : 1n << binary) * 10n ** BigInt(Math.max(0, ten));
  const divisor = 10n ** BigInt(Math.max(0, -ten));
  if (scaled % divisor !== 0n) return { kind: 'fraction' };
  const value = scaled / divisor;
  return value > BigInt(Number.MAX_SAFE_INTEGER) ? { kind: 'too-large' } : { kind: 'whole', value: Number(value) };
}
