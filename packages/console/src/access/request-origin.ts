import { isLoopback } from '@weir/runtime';

// Without authentication only this machine may ask. A browser on this machine is still the attacker's tool: a page from
// anywhere can send requests to 127.0.0.1 (cross-site POST), and a name of its own can be made to point there (DNS
// rebinding). Against the first stand Origin and content type, against the second the Host header.
export interface OriginHeaders {
  readonly host?: string | undefined;
  readonly origin?: string | undefined;
}

export type OriginRefusal = { readonly code: 'ForeignHost' | 'ForeignOrigin'; readonly message: string };

/** Why a request to a console without authentication is refused; undefined: it may pass. */
export function originRefusalFor({ host, origin }: OriginHeaders, scheme: 'http' | 'https'): OriginRefusal | undefined {
  const asked = hostFromHeader(host);
  if (asked === undefined || !isLoopback(asked)) {
    return {
      code: 'ForeignHost',
      message:
        'this console asks for no token and answers only under an address of this machine; open it as 127.0.0.1 or localhost',
    };
  }
  if (origin !== undefined && origin !== `${scheme}://${host}`) {
    return { code: 'ForeignOrigin', message: 'a page of another site may not use this console' };
  }
  return undefined;
}

/** The host of a Host header, without brackets and port. */
function hostFromHeader(header: string | undefined): string | undefined {
  const match = /^(?:\[([0-9a-f:.]+)\]|([^:[\]\s/@]+))(?::\d{1,5})?$/i.exec(header ?? '');
  return match === null ? undefined : (match[1] ?? match[2]);
}

// A console that asks for tokens answers under any name: Service, Ingress, port-forward. A browser sends a token only where our own page
// put it into a request, never by itself as it does with cookies, and keeps it apart by origin: a page of another site, also under a name
// that was pointed here (DNS rebinding), has none to send. What its pages may do is in the browser's own header, which holds behind
// every Ingress, also one that rewrites Host.

/** Whether a browser says that a page of another site sent this. */
export function isCrossSite(headers: { readonly 'sec-fetch-site'?: string | readonly string[] | undefined }): boolean {
  const site = headers['sec-fetch-site'];
  return site === 'cross-site' || site === 'same-site';
}
