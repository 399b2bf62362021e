import { createHash, timingSafeEqual } from 'node:crypto';
import { isLoopback } from '../config/addresses.ts';
import type { SettingFormat } from '../config/parse-config.ts';
import { Secret } from '../secret.ts';

const MIN_TOKEN_CHARACTERS = 16;

/** The format of an admin token: the characters of a bearer token (RFC 6750, section 2.1). */
export const ADMIN_TOKEN_FORMAT: SettingFormat<Secret> = {
  allowed: `at least ${MIN_TOKEN_CHARACTERS} characters: letters, digits and - . _ ~ + / =`,
  parse(raw) {
    const token = raw.trim();
    return token.length >= MIN_TOKEN_CHARACTERS && /^[\w.~+/-]+=*$/.test(token) ? new Secret(token) : undefined;
  },
  redact: () => '[redacted]',
};

/**
 * Returns a function that checks an Authorization header for `token`. Without a token the function accepts every
 * request.
 */
export function createTokenCheck(token: Secret | undefined): (authorization: string | undefined) => boolean {
  if (token === undefined) return () => true;
  const expected = digestOf(token.reveal());
  return (authorization) => {
    const given = /^Bearer +(\S+)$/i.exec(authorization ?? '')?.[1];
    return given !== undefined && timingSafeEqual(digestOf(given), expected);
  };
}

/**
 * Returns the digest of a text. A digest has a fixed length, so the time that a comparison of two digests takes does not reveal the length
 * of the token.
 */
function digestOf(text: string): Buffer {
  return createHash('sha256').update(text).digest();
}

export interface ExposureWarning {
  readonly message: string;
  readonly advice: string;
}

export interface AdminEndpoint {
  readonly host: string;
  readonly tls?: string | undefined;
  readonly token?: Secret | undefined;
}

/** Returns a warning if other hosts can read the admin server's data or its token; otherwise undefined. */
export function exposureWarningFor({ host, tls, token }: AdminEndpoint): ExposureWarning | undefined {
  if (isLoopback(host)) return undefined;
  if (token === undefined)
    return {
      message:
        'any host that reaches the admin server can read metrics, access logs, top clients and the names of Services and tenants',
      advice: 'set WEIR_ADMIN_TOKEN and WEIR_ADMIN_TLS, or listen on loopback',
    };
  if (tls === undefined)
    return { message: 'the admin token crosses the network unencrypted', advice: 'set WEIR_ADMIN_TLS' };
  return undefined;
}
