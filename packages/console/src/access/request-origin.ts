import { isLoopback } from '@weir/runtime';

// A console without authentication accepts requests from its own machine only. A browser on this machine may still work for an
// attacker: every web page can send requests to 127.0.0.1 (cross-site POST), and an attacker's host name can resolve to 127.0.0.1 (DNS
// rebinding). The check of Origin and content type stops cross-site requests, the check of Host stops DNS rebinding.
export interface OriginHeaders {
  readonly host?: string | undefined;
  readonly origin?: string | undefined;
}

export type OriginRefusal = { readonly code: 'ForeignHost' | 'ForeignOrigin'; readonly message: string };

/** Why a console without authentication refuses a request; undefined if the request is allowed. */
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
      message: 'requests from pages of other sites are refused; open the console itself',
    };
  }
  return undefined;
}

/** The host of a Host header, without brackets and port. */
function hostFromHeader(header: string | undefined): string | undefined {
  const match = /^(?:\[([0-9a-f:.]+)\]|([^:[\]\s/@]+))(?::\d{1,5})?$/i.exec(header ?? '');
  return match === null ? undefined : (match[1] ?? match[2]);
}

/**
 * Whether the browser marks a request as sent by a page of another site. A console with authentication serves every host name, so that
 * Services, Ingresses and port-forwards work. It needs no check of Host: browsers do not attach the token by themselves, as they do with
 * cookies, and another site cannot read it. `Sec-Fetch-Site` is also correct behind an Ingress that rewrites Host.
 */
export function isCrossSite(headers: { readonly 'sec-fetch-site'?: string | readonly string[] | undefined }): boolean {
  const site = headers['sec-fetch-site'];
  return site === 'cross-site' || site === 'same-site';
}
