import { parseHostPort } from './host-port.ts';

/**
 * What of a URL may be printed. It works on the text, because what is to be printed is often not a valid URL (a password with `#`
 * or `/` that nobody escaped), and then a parser would put parts of the password into host, path or fragment.
 */
export function redactUrl(text: string): string {
  const scheme = /^[a-z][a-z0-9+.-]*:\/\//i.exec(text)?.[0] ?? '';
  const rest = text.slice(scheme.length);
  const at = rest.lastIndexOf('@');
  if (at !== -1)
    return `${scheme}${redactCredentials(rest.slice(0, at))}[redacted]@${withoutQuery(rest.slice(at + 1))}`;
  // Without `@` a valid URL holds no password before the query; anything else may be a password that lost its place.
  if (scheme === '') return parseHostPort(rest) === undefined ? '[redacted]' : rest;
  return URL.canParse(text) || isHostList(rest) ? `${scheme}${withoutQuery(rest)}` : `${scheme}[redacted]`;
}

/** `name:password` keeps the name, which an ACL error needs; a text without colon may itself be the password. */
function redactCredentials(credentials: string): string {
  const name = /^([\w.-]*):/.exec(credentials)?.[1];
  return name === undefined ? '' : `${name}:`;
}

/** Several hosts, which no URL has: `a:1,b:2/0`. */
function isHostList(rest: string): boolean {
  const hosts = /^[^/?#]*/.exec(rest)?.[0].split(',') ?? [];
  return hosts.length > 1 && hosts.every((host) => parseHostPort(host) !== undefined);
}

function withoutQuery(text: string): string {
  return text.replace(/[?#].*$/s, '');
}
