import type { UnusableSecret } from '@weir/model';
import { unusable } from './pem-certificates.ts';

export type SecretValue = { readonly kind: 'none' } | { readonly kind: 'text'; readonly text: string } | UnusableSecret;

/** Of one value. Twenty long certificates are a third of it. */
const MAX_VALUE_BYTES = 64 * 1024;
const NO_VALUE: SecretValue = { kind: 'none' };

/**
 * A value of a Secret as it stands in a manifest or comes from an API server. Not by `Fields`, which say what they found instead: nothing
 * of what is in a Secret is ever told.
 */
export function readSecretValue(raw: unknown, key: string): SecretValue {
  const { data, stringData } = (raw ?? {}) as { data?: unknown; stringData?: unknown };
  for (const map of [data, stringData]) if (!isMapping(map)) return unusable('has data that is no mapping');
  const plain = (stringData as Mapping | null | undefined)?.[key] ?? null;
  const encoded = (data as Mapping | null | undefined)?.[key] ?? null;
  // As the API server does: what is written plainly wins.
  const value = plain ?? encoded;
  if (value === null || value === '') return NO_VALUE;
  if (typeof value !== 'string') return unusable(`has a ${key} that is no text`);
  if (value.length > MAX_VALUE_BYTES * 2) return tooLong(key);
  const bytes = plain === null ? decodeBase64(value) : Buffer.from(value);
  if (bytes === undefined) return unusable(`has a ${key} that is not base64; write it under stringData as it is`);
  if (bytes.length > MAX_VALUE_BYTES) return tooLong(key);
  return bytes.length === 0 ? NO_VALUE : { kind: 'text', text: bytes.toString('latin1') };
}

type Mapping = Readonly<Record<string, unknown>>;

function isMapping(value: unknown): boolean {
  return value === undefined || value === null || (typeof value === 'object' && !Array.isArray(value));
}

function tooLong(key: string): UnusableSecret {
  return unusable(`has a ${key} of more than ${MAX_VALUE_BYTES / 1024} KiB`);
}

/** RFC 4648, section 4, with line breaks. */
function decodeBase64(text: string): Buffer | undefined {
  const digits = text.replaceAll(/[\r\n]/g, '');
  return digits.length % 4 === 0 && /^[A-Za-z0-9+/]*={0,2}$/.test(digits) ? Buffer.from(digits, 'base64') : undefined;
}
