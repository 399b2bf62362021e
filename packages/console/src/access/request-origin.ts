import { isLoopback } from '@weir/runtime';

// Checks where a request comes from. A console without authentication accepts only connections from its own machine, but an attacker's web
// page in a browser on this machine can still reach the console. The checks of Origin and content type stop requests that such a page sends
// to 127.0.0.1 (cross-site POST). The check of Host stops requests to an attacker's host name that resolves to 127.0.0.1 (DNS rebinding).
export interface OriginHeaders {
  readonly host?: string | undefined;
  readonly origin?: string | undefined;
}

export type OriginRefusal = { readonly code: 'ForeignHost' | 'ForeignOrigin'; readonly message: string };

/** Returns why a console without authentication refuses a request, or undefined if the request is allowed. */
export function originRefusalFor({ host, origin }: OriginHeaders, scheme: 'http' | 'https'): OriginRefusal | undefined {
  const requestedHost = hostFromHeader(host);
  if (requestedHost === undefined || !isLoopback(requestedHost)) {
    return {
      code: 'ForeignHost',
      message:
        'this console has no authentication and serves loopback addresses only; open it as 127.0.0.1 or localhost',
    };
  }
  if (origin !== undefined && origin !== `${scheme}://${host}`) {
    return {
      code: 'ForeignOrigin',
      message: 'the console refuses requests from pages of other sites; open the page of the console instead',
    };
  }
  return undefined;
}

/** Returns the host of a Host header, without brackets and port. */
function hostFromHeader(header: string | undefined): string | undefined {
  const match = /^(?:\[([0-9a-f:.]+)\]|([^:[\]\s/@]+))(?::\d{1,5})?$/i.exec(header ?? '');
  return match === null ? undefined : (match[1] ?? match[2]);
}

/**
 * Whether the browser marks the request as sent by a page of another site. A console with authentication makes only this check. It accepts
 * every Host header, because users reach it under many names: by Services, Ingresses and port-forwards. This is safe, because a browser
 * does not attach the token by itself as it does with cookies, and pages of other sites cannot read the token.
 */
export function isCrossSite(headers: { readonly 'sec-fetch-site'?: string | readonly string[] | undefined }): boolean {
  const site = headers['sec-fetch-site'];
  return site === 'cross-site' || site === 'same-site';
}
