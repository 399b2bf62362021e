// Small private texts on their way through a store that others may read. The same text about the same thing is sealed the same
// way each time, so that whoever writes it again (after a restart, or as the next leader) writes no change: the nonce is drawn from the
// text itself (the idea of RFC 5297), and none is used for two texts.
import { createCipheriv, createDecipheriv, createHmac, hkdfSync } from 'node:crypto';
import type { Secret } from './secret.ts';

const CIPHER = 'aes-256-gcm';
const KEY_BYTES = 32;
/** As GCM wants it (NIST SP 800-38D, 8.2). */
const NONCE_BYTES = 12;
const TAG_BYTES = 16;
/** Of the first version, so that another cipher can follow. */
const VERSION_PREFIX = '1.';

/** AES-256-GCM under keys derived (HKDF-SHA256, RFC 5869) from one secret that all processes of a fleet have. */
export class Sealer {
  readonly #secret: Secret;
  readonly #key: Buffer;
  readonly #nonceKey: Buffer;

  constructor(secret: Secret) {
    this.#secret = secret;
    this.#key = this.derive('seal', KEY_BYTES);
    this.#nonceKey = this.derive('nonce', KEY_BYTES);
  }

  /** `about` is not hidden: what is sealed about one thing cannot be opened as if it were about another. */
  seal(text: string, about: string): string {
    const nonce = createHmac('sha256', this.#nonceKey)
      .update(`${about.length}:${about}`)
      .update(text)
      .digest()
      .subarray(0, NONCE_BYTES);
    const cipher = createCipheriv(CIPHER, this.#key, nonce, { authTagLength: TAG_BYTES }).setAAD(Buffer.from(about));
    const sealed = Buffer.concat([nonce, cipher.update(text, 'utf8'), cipher.final(), cipher.getAuthTag()]);
    return `${VERSION_PREFIX}${sealed.toString('base64url')}`;
  }

  /** Undefined: damaged, about something else, or sealed under another secret. */
  open(sealed: string, about: string): string | undefined {
    if (!sealed.startsWith(VERSION_PREFIX)) return undefined;
    const bytes = Buffer.from(sealed.slice(VERSION_PREFIX.length), 'base64url');
    if (bytes.length < NONCE_BYTES + TAG_BYTES) return undefined;
    const nonce = bytes.subarray(0, NONCE_BYTES);
    const decipher = createDecipheriv(CIPHER, this.#key, nonce, { authTagLength: TAG_BYTES })
      .setAAD(Buffer.from(about))
      .setAuthTag(bytes.subarray(-TAG_BYTES));
    try {
      const text = decipher.update(bytes.subarray(NONCE_BYTES, -TAG_BYTES));
      return Buffer.concat([text, decipher.final()]).toString('utf8');
    } catch {
      return undefined; // The tag does not fit.
    }
  }

  /** Key material for another purpose, the same in each process of the fleet; it tells nothing of the secret. */
  derive(purpose: string, bytes: number): Buffer {
    return Buffer.from(hkdfSync('sha256', this.#secret.reveal(), '', `weir ${purpose}`, bytes));
  }
}
