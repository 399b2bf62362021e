import { mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { type DemoNetwork, rewriteAddresses } from './demo-network.ts';

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
