import { execFileSync } from 'node:child_process';
import { programPath } from '../programs/require-program.ts';

/** Address of the API server. It is the same in every cluster, because every cluster runs in its own network namespace. */
export const API_SERVER_ADDRESS = '10.250.0.1';
export const POD_CIDR = '10.244.0.0/16';

export type NodeNetwork = {
  readonly name: string;
  readonly address: string;
  readonly podCidr: string;
  /** Path of the network namespace of the node. */
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

/**
 * Creates a bridge in the current network namespace, with the addresses of the API server and of clients, and connects each node
 * to the bridge by a veth pair.
 */
export function createNetwork(networks: readonly NodeNetwork[], clients: readonly string[]): void {
  ip([
    'link set lo up',
    'link add br0 type bridge',
    'link set br0 up',
    ...[API_SERVER_ADDRESS, ...clients].map((address) => `address add ${address}/24 dev br0`),
  ]);
  for (const network of networks) connectNode(network, networks);
}

function connectNode(network: NodeNetwork, all: readonly NodeNetwork[]): void {
  const { name, address, podCidr, namespacePath } = network;
  ip([
    `netns add ${name}`,
    `link add w-${name} type veth peer name eth0 netns ${name}`,
    `link set w-${name} master br0 up`,
    `route add ${podCidr} via ${address}`,
  ]);
  const others = all.filter((other) => other !== network);
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
  // Removes the kernel's limit of ICMP messages, because tests expect an ICMP message for every refused datagram.
  setIpv4Sysctl(namespacePath, 'icmp_ratelimit', 0);
}

/** Sets the state of the interface that connects the node to the bridge. */
export function setLink({ name }: NodeNetwork, state: 'up' | 'down'): void {
  ip([`link set w-${name} ${state}`]);
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
