import { createHash, timingSafeEqual } from 'node:crypto';
import type { SettingFormat } from '../config/setting.ts';
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
