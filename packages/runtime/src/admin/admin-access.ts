import { createHash, timingSafeEqual } from 'node:crypto';
import { isLoopback } from '../config/addresses.ts';
import type { SettingFormat } from '../config/parse-config.ts';
import { Secret } from '../secret.ts';

const MIN_TOKEN_CHARACTERS = 16;

/** RFC 6750, section 2.1: what a bearer token may consist of. */
export const ADMIN_TOKEN_FORMAT: SettingFormat<Secret> = {
  allowed: `at least ${MIN_TOKEN_CHARACTERS} letters, digits and - . _ ~ + / =`,
  parse(raw) {
    const token = raw.trim();
    return token.length >= MIN_TOKEN_CHARACTERS && /^[\w.~+/-]+=*$/.test(token) ? new Secret(token) : undefined;
  },
  redact: () => '[redacted]',
};

/** Whether this Authorization header shows the token; where there is none to show, everybody does. */
export function createTokenCheck(token: Secret | undefined): (authorization: string | undefined) => boolean {
  if (token === undefined) return () => true;
  const wanted = digestOf(token.reveal());
  return (authorization) => {
    const given = /^Bearer +(\S+)$/i.exec(authorization ?? '')?.[1];
    return given !== undefined && timingSafeEqual(digestOf(given), wanted);
  };
}

/** Of one length whatever is sent: how long a comparison takes tells nothing of the token. */
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

/** What others on the network can read of an admin server there; undefined: nothing. */
export function exposureWarningFor({ host, tls, token }: AdminEndpoint): ExposureWarning | undefined {
  if (isLoopback(host)) return undefined;
  if (token === undefined)
    return {
      message: 'whoever reaches admin can read metrics, and the names of Services and tenants',
      advice: 'set WEIR_ADMIN_TOKEN and WEIR_ADMIN_TLS, or listen on loopback',
    };
  if (tls === undefined)
    return { message: 'the token of admin crosses the network in the clear', advice: 'set WEIR_ADMIN_TLS' };
  return undefined;
}
