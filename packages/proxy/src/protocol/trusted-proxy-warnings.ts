import { parseCidr } from '@weir/model/data-plane';

/** Returns a warning for each trusted network that contains every IPv4 address or every IPv6 address. */
export function trustedProxyWarnings(trusted: readonly string[] = []): readonly string[] {
  return trusted
    .filter((network) => parseCidr(network)?.prefix === 0)
    .map(
      (network) =>
        `${network} trusts every client to send a PROXY header: clients can forge their address and bypass source ranges and limits per client; list only the networks of your load balancers`,
    );
}
