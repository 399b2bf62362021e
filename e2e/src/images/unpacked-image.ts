// An image as a runtime sees it: its configuration, and the files of all its layers in one folder.
import { execFileSync } from 'node:child_process';
import { mkdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { filesIn } from './image-files.ts';

/** Capabilities of programs are among the extended attributes. */
const EXACTLY = ['--xattrs', '--xattrs-include=*', '--preserve-permissions'];

export interface UnpackedImage {
  /** By which a runtime knows it. */
  readonly name: string;
  readonly rootfs: string;
  readonly settings: ImageSettings;
  /** All that is in the image beside its files: manifests, configuration, history. */
  readonly descriptions: string;
  /** Files with capabilities, as their layer has them. */
  readonly capable: readonly string[];
  /** What is pulled, and what it is on a disk. */
  readonly size: { readonly packed: number; readonly unpacked: number };
}

export interface ImageSettings {
  readonly User?: string;
  readonly Entrypoint?: readonly string[];
  readonly Cmd?: readonly string[];
  readonly Env?: readonly string[];
  readonly WorkingDir?: string;
  readonly Labels?: Readonly<Record<string, string>>;
}

interface Index {
  readonly manifests: readonly { readonly digest: string; readonly annotations: Readonly<Record<string, string>> }[];
}

interface Manifest {
  readonly config: { readonly digest: string };
  readonly layers: readonly { readonly digest: string; readonly size: number }[];
}

export function unpackImage(archive: string, folder: string): UnpackedImage {
  const layout = join(folder, 'layout');
  const rootfs = join(folder, 'rootfs');
  for (const each of [layout, rootfs]) mkdirSync(each, { recursive: true });
  tar('--extract', '--file', archive, '--directory', layout);
  const blobPath = (digest: string): string => join(layout, 'blobs', ...digest.split(':'));
  const blob = (digest: string): string => readFileSync(blobPath(digest), 'utf8');
  const indexText = readFileSync(join(layout, 'index.json'), 'utf8');
  const [descriptor] = (JSON.parse(indexText) as Index).manifests;
  const manifestText = blob(descriptor?.digest ?? '');
  const { config, layers } = JSON.parse(manifestText) as Manifest;
  for (const { digest } of layers) tar('--extract', '--file', blobPath(digest), '--directory', rootfs, ...EXACTLY);
  const listings = layers.map(({ digest }) => tar('--list', '-vv', '--file', blobPath(digest), ...EXACTLY));
  return {
    name: descriptor?.annotations['org.opencontainers.image.ref.name'] ?? '',
    rootfs,
    settings: (JSON.parse(blob(config.digest)) as { config: ImageSettings }).config,
    descriptions: [indexText, manifestText, blob(config.digest)].join('\n'),
    capable: listings.flatMap(capableIn),
    size: {
      packed: layers.reduce((sum, { size }) => sum + size, 0),
      unpacked: sizeOf(rootfs),
    },
  };
}

function sizeOf(folder: string): number {
  return filesIn(folder).reduce((sum, { size }) => sum + size, 0);
}

/** Below the line of a file are those of its extended attributes. */
function capableIn(listing: string): string[] {
  const found = listing.matchAll(/(\S+)\n(?: +\w: .*\n)*? +x: +\d+ security\.capability$/gm);
  return [...found].map(([, path = '']) => path);
}

function tar(...args: string[]): string {
  return execFileSync('tar', args, { encoding: 'utf8', stdio: ['ignore', 'pipe', 'inherit'], maxBuffer: 1 << 26 });
}
