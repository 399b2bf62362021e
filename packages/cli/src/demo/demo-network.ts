import { UsageError } from '@weir/runtime';

/** What the addresses in the manifests begin with. */
const MANIFEST_ADDRESS_PREFIX = '127.0.0.';

/** Where the demo happens: the first three numbers of a loopback network. */
export interface DemoNetwork {
  readonly prefix: string;
}

/** Reads `127.0.5`. */
export function parseNetwork(text: string): DemoNetwork {
  const numbers = /^127\.(\d{1,3})\.(\d{1,3})$/.exec(text);
  if (numbers === null || numbers.slice(1).some((part) => Number(part) > 255)) {
    throw new UsageError(`--network is "${text}"; use the first three numbers of a loopback address, such as 127.0.5`);
  }
  return { prefix: `${text}.` };
}

export function addressIn({ prefix }: DemoNetwork, last: number): string {
  return `${prefix}${last}`;
}

/** A manifest with its addresses moved to the network. */
export function rewriteAddresses({ prefix }: DemoNetwork, manifest: string): string {
  return manifest.replaceAll(MANIFEST_ADDRESS_PREFIX, prefix);
}
