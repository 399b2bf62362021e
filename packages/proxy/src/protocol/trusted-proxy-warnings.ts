import { parseCidr } from '@weir/model/data-plane';
import type { ProxyOptions } from '../supervisor/proxy-settings.ts';

/** Returns a warning for each trusted network that contains every IPv4 address or every IPv6 address. */
export function trustedProxyWarnings({
  trustProxyProtocol = [],
  trustForwarded = [],
}: Pick<ProxyOptions, 'trustProxyProtocol' | 'trustForwarded'>): readonly string[] {
  return [
    ...trustProxyProtocol
      .filter(containsAll)
      .map(
        (network) =>
          `${network} trusts every client to send a PROXY header: clients can forge their address and bypass source ranges and limits per client; list only the networks of your load balancers`,
      ),
    ...trustForwarded
      .filter(containsAll)
      .map(
        (network) =>
          `${network} trusts the X-Forwarded-* fields of every client: clients can forge their address in the fields that pods get and in access logs; list only the networks of your HTTP proxies`,
      ),
  ];
}

function containsAll(network: string): boolean {
  return parseCidr(network)?.prefix === 0;
}
