import { execFileSync } from 'node:child_process';
import { programPath } from '../programs/require-program.ts';

/** The addresses of the cluster: its own machine, in which nobody else is, can always take the same. */
export const API_SERVER_ADDRESS = '10.250.0.1';
export const POD_CIDR = '10.244.0.0/16';

export type NodeNetwork = {
  readonly name: string;
  readonly address: string;
  readonly podCidr: string;
  /** Path of its network namespace. */
  readonly namespacePath: string;
};

export function nodeNetworks(count: number): NodeNetwork[] {
  return Array.from({ length: count }, (_, index) => {
    const name = `node-${index + 1}`;
    return {
      name,
      address: `10.250.0.${11 + index}`,
      podCidr: `10.244.${index + 1}.0/24`,
      namespacePath: `/run/netns/${name}`,
    };
  });
}

/** A bridge in the namespace that we are in, with the API server's and the clients' addresses, and each node on a wire of its own. */
export function createNetwork(places: readonly NodeNetwork[], clients: readonly string[]): void {
  ip([
    'link set lo up',
    'link add br0 type bridge',
    'link set br0 up',
    ...[API_SERVER_ADDRESS, ...clients].map((address) => `address add ${address}/24 dev br0`),
  ]);
  for (const place of places) connectNode(place, places);
}

function connectNode(place: NodeNetwork, all: readonly NodeNetwork[]): void {
  const { name, address, podCidr, namespacePath } = place;
  ip([
    `netns add ${name}`,
    `link add w-${name} type veth peer name eth0 netns ${name}`,
    `link set w-${name} master br0 up`,
    `route add ${podCidr} via ${address}`,
  ]);
  const others = all.filter((other) => other !== place);
  ip(
    [
      'link set lo up',
      `address add ${address}/24 dev eth0`,
      'link set eth0 up',
      `route add default via ${API_SERVER_ADDRESS}`,
      ...others.map((other) => `route add ${other.podCidr} via ${other.address}`),
    ],
    ['-netns', name],
  );
  setIpv4Sysctl(namespacePath, 'ip_forward', 1);
  // the kernel tells a client of only a few refused datagrams per second; here each counts
  setIpv4Sysctl(namespacePath, 'icmp_ratelimit', 0);
}

/** The end of its wire at the bridge. */
export function setLink({ name }: NodeNetwork, state: 'in' | 'out'): void {
  ip([`link set w-${name} ${state === 'in' ? 'up' : 'down'}`]);
}

function setIpv4Sysctl(namespace: string, name: string, value: number): void {
  execFileSync('/usr/bin/nsenter', [`--net=${namespace}`, 'sh', '-c', `echo ${value} > /proc/sys/net/ipv4/${name}`]);
}

function ip(lines: readonly string[], options: readonly string[] = []): void {
  execFileSync(programPath('ip'), [...options, '-batch', '-'], {
    input: `${lines.join('\n')}\n`,
    stdio: ['pipe', 'ignore', 'inherit'],
  });
}
