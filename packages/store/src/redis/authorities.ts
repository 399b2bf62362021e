import { X509Certificate } from 'node:crypto';
import { readFile } from 'node:fs/promises';
import { errorMessage } from '@weir/runtime';
import { StoreError } from '../error.ts';

const PEM_CERTIFICATE = /-----BEGIN CERTIFICATE-----[^-]+-----END CERTIFICATE-----/g;

/**
 * The certificates of authorities in a PEM file, as text. Throws REFUSED when there is no file or no certificate in it, or one that cannot be
 * read: OpenSSL would pass over it in silence, and every server would then seem to be a stranger.
 */
export async function readAuthorities(path: string): Promise<readonly string[]> {
  const refused = (why: string, cause?: unknown): StoreError =>
    new StoreError(
      'REFUSED',
      `the authority of Redis in ${path} ${why}; WEIR_REDIS_CA names a file of PEM certificates`,
      {
        cause,
      },
    );
  let text: string;
  try {
    text = await readFile(path, 'utf8');
  } catch (cause) {
    throw refused(`cannot be read (${errorMessage(cause)})`, cause);
  }
  const certificates = text.match(PEM_CERTIFICATE) ?? [];
  if (certificates.length === 0) throw refused('is missing: no certificate is in the file');
  for (const certificate of certificates) {
    try {
      new X509Certificate(certificate);
    } catch (cause) {
      throw refused(`is damaged (${errorMessage(cause)})`, cause);
    }
  }
  return certificates;
}
