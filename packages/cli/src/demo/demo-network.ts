import { mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
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

const MANIFEST_DIRECTORY = fileURLToPath(
  new URL(import.meta.url.includes('/dist/') ? '../../../demo/' : '../../demo/', import.meta.url),
);

export interface DemoManifests {
  readonly directory: string;
  close(): Promise<void>;
}

/** A copy that whoever watches may edit; it goes away with the demo. */
export async function copyDemoManifests(network: DemoNetwork): Promise<DemoManifests> {
  const directory = await mkdtemp(join(tmpdir(), 'weir-demo-'));
  for (const name of await readdir(MANIFEST_DIRECTORY)) {
    if (!name.endsWith('.yaml')) continue;
    const manifest = await readFile(join(MANIFEST_DIRECTORY, name), 'utf8');
    await writeFile(join(directory, name), rewriteAddresses(network, manifest));
  }
  return { directory, close: () => rm(directory, { recursive: true, force: true }) };
}
