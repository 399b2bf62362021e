import { networkInterfaces } from 'node:os';
import { compileNetworks } from '@weir/model/data-plane';

/** Which of these addresses exist on this host. On a loopback interface the whole network does. */
export function localAddresses(wanted: readonly string[]): string[] {
  const interfaces = Object.values(networkInterfaces()).flatMap((list) => list ?? []);
  const exact = new Set(interfaces.map(({ address }) => address));
  const loopback = compileNetworks(
    interfaces.filter(({ internal }) => internal).flatMap(({ cidr }) => (cidr === null ? [] : [cidr])),
  );
  return wanted.filter((address) => exact.has(address) || loopback.contains(address));
}
