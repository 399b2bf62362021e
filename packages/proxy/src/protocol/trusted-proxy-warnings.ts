import { parseCidr } from '@weir/model/data-plane';

/** Returns one warning for each network of trusted load balancers that contains all addresses. */
export function trustedProxyWarnings(trusted: readonly string[] = []): readonly string[] {
  return trusted
    .filter((network) => parseCidr(network)?.prefix === 0)
    .map(
      (network) =>
        `${network} trusts every client to send a PROXY header: clients can forge their address and bypass source ranges and limits per client; list only the networks of your load balancers`,
    );
}
