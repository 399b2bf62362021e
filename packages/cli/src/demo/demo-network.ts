import { mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { UsageError } from '@weir/runtime';

/** The prefix of all addresses in the manifests. `rewriteAddresses` replaces this prefix by the prefix of the `DemoNetwork`. */
const MANIFEST_ADDRESS_PREFIX = '127.0.0.';

export interface DemoNetwork {
  /** The first three numbers of the loopback addresses, with the last dot: `127.0.5.`. */
  readonly prefix: string;
}

/** Parses the first three numbers of a loopback address, such as `127.0.5`. */
export function parseNetwork(text: string): DemoNetwork {
  const numbers = /^127\.(\d{1,3})\.(\d{1,3})$/.exec(text);
  if (numbers === null || numbers.slice(1).some((part) => Number(part) > 255)) {
    throw new UsageError(
      `invalid --network "${text}": expected the first three numbers of a loopback address, such as 127.0.5`,
    );
  }
  return { prefix: `${text}.` };
}

export function addressIn({ prefix }: DemoNetwork, last: number): string {
  return `${prefix}${last}`;
}

function rewriteAddresses({ prefix }: DemoNetwork, manifest: string): string {
  return manifest.replaceAll(MANIFEST_ADDRESS_PREFIX, prefix);
}

const MANIFEST_DIRECTORY = fileURLToPath(
  new URL(import.meta.url.includes('/dist/') ? '../../../demo/' : '../../demo/', import.meta.url),
);

export interface DemoManifests {
  readonly directory: string;
  close(): Promise<void>;
}

/** Copies the manifests to a temporary directory, where the user may edit them. `close` deletes the directory. */
export async function copyDemoManifests(network: DemoNetwork): Promise<DemoManifests> {
  const directory = await mkdtemp(join(tmpdir(), 'weir-demo-'));
  for (const name of await readdir(MANIFEST_DIRECTORY)) {
    if (!name.endsWith('.yaml')) continue;
    const manifest = await readFile(join(MANIFEST_DIRECTORY, name), 'utf8');
    await writeFile(join(directory, name), rewriteAddresses(network, manifest));
  }
  return { directory, close: () => rm(directory, { recursive: true, force: true }) };
}
