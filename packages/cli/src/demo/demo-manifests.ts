import { mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { type DemoNetwork, movedTo } from './demo-network.ts';

const MANIFESTS = fileURLToPath(
  new URL(import.meta.url.includes('/dist/') ? '../../../demo/' : '../../demo/', import.meta.url),
);

export interface DemoManifests {
  readonly directory: string;
  close(): Promise<void>;
}

/** A copy that whoever watches may edit; it goes away with the demo. */
export async function copyManifests(network: DemoNetwork): Promise<DemoManifests> {
  const directory = await mkdtemp(join(tmpdir(), 'weir-demo-'));
  for (const name of await readdir(MANIFESTS)) {
    if (!name.endsWith('.yaml')) continue;
    const manifest = await readFile(join(MANIFESTS, name), 'utf8');
    await writeFile(join(directory, name), movedTo(network, manifest));
  }
  return { directory, close: () => rm(directory, { recursive: true, force: true }) };
}
