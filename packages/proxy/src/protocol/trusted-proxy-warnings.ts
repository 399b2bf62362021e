import { parseCidr } from '@weir/model/data-plane';

/** One warning for each network of trusted load balancers that contains all addresses. */
export function trustedProxyWarnings(trusted: readonly string[] = []): readonly string[] {
  return trusted
    .filter((network) => parseCidr(network)?.prefix === 0)
    .map(
      (network) =>
        `every client in ${network} is trusted as a load balancer: each can claim any address in a PROXY header, and so bypass source ranges and limits per client; name only the networks of your load balancers`,
    );
}
