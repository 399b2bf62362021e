// Without authentication only this machine may ask. A browser on this machine is still the attacker's tool: a page from
// anywhere can send requests to 127.0.0.1 (cross-site POST), and a name of its own can be made to point there (DNS
// rebinding). Against the first stand Origin and content type, against the second the Host header.
import { isLoopback } from '@weir/runtime';

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
