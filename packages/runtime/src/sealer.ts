// Encrypts private keys that pass through a store which other users may read. Encryption is deterministic, because the
// nonce is derived from the plaintext (synthetic IV, RFC 5297). So a writer that publishes the same key again, after a
// restart or as the next leader, changes nothing in the store. Two different plaintexts do not share a nonce.
import { createCipheriv, createDecipheriv, createHmac, hkdfSync } from 'node:crypto';
import type { Secret } from './secret.ts';

const CIPHER = 'aes-256-gcm';
const KEY_BYTES = 32;
/** The nonce length that is recommended for GCM, 96 bits (NIST SP 800-38D, section 5.2.1.1). */
const NONCE_BYTES = 12;
const TAG_BYTES = 16;
/** The version of the format. A later version of Weir can use another version and another cipher. */
const VERSION_PREFIX = '1.';

/**
 * Encrypts with AES-256-GCM. The keys are derived by HKDF-SHA256 (RFC 5869) from one secret that all processes of a
 * fleet share.
 */
export class Sealer {
  readonly #secret: Secret;
  readonly #key: Buffer;
  readonly #nonceKey: Buffer;

  constructor(secret: Secret) {
    this.#secret = secret;
    this.#key = this.derive('seal', KEY_BYTES);
    this.#nonceKey = this.derive('nonce', KEY_BYTES);
  }

  /** Encrypts `text`. `open` needs the same `context`. The context is authenticated, but it is neither encrypted nor part of the result. */
  seal(text: string, context: string): string {
    const nonce = createHmac('sha256', this.#nonceKey)
      .update(`${context.length}:${context}`)
      .update(text)
      .digest()
      .subarray(0, NONCE_BYTES);
    const cipher = createCipheriv(CIPHER, this.#key, nonce, { authTagLength: TAG_BYTES }).setAAD(Buffer.from(context));
    const sealed = Buffer.concat([nonce, cipher.update(text, 'utf8'), cipher.final(), cipher.getAuthTag()]);
    return `${VERSION_PREFIX}${sealed.toString('base64url')}`;
  }

  /**
   * Decrypts a text. Returns undefined if the text is damaged, was sealed with another context, or was sealed with
   * another secret.
   */
  open(sealed: string, context: string): string | undefined {
    if (!sealed.startsWith(VERSION_PREFIX)) return undefined;
    const bytes = Buffer.from(sealed.slice(VERSION_PREFIX.length), 'base64url');
    if (bytes.length < NONCE_BYTES + TAG_BYTES) return undefined;
    const nonce = bytes.subarray(0, NONCE_BYTES);
    const decipher = createDecipheriv(CIPHER, this.#key, nonce, { authTagLength: TAG_BYTES })
      .setAAD(Buffer.from(context))
      .setAuthTag(bytes.subarray(-TAG_BYTES));
    try {
      const text = decipher.update(bytes.subarray(NONCE_BYTES, -TAG_BYTES));
      return Buffer.concat([text, decipher.final()]).toString('utf8');
    } catch {
      return undefined; // The authentication tag does not match.
    }
  }

  /**
   * Derives key material for `purpose`. All processes of the fleet derive the same key material, and it does not reveal
   * the secret.
   */
  derive(purpose: string, bytes: number): Buffer {
    return Buffer.from(hkdfSync('sha256', this.#secret.reveal(), '', `weir ${purpose}`, bytes));
  }
}
