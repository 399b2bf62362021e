import { createHash, timingSafeEqual } from 'node:crypto';
import type { Format } from '../config/setting.ts';
import { Secret } from '../secret.ts';

const LEAST = 16;

/** RFC 6750, section 2.1: what a bearer token may consist of. */
export const ADMIN_TOKEN: Format<Secret> = {
  allowed: `at least ${LEAST} letters, digits and - . _ ~ + / =`,
  parse(raw) {
    const token = raw.trim();
    return token.length >= LEAST && /^[\w.~+/-]+=*$/.test(token) ? new Secret(token) : undefined;
  },
  show: () => '[redacted]',
};

/** Whether this Authorization header shows the token; where there is none to show, everybody does. */
export function tokenCheck(token: Secret | undefined): (authorization: string | undefined) => boolean {
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
