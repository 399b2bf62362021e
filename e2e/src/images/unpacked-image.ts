import { execFileSync } from 'node:child_process';
import { lstatSync, mkdirSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';

// An image as a container runtime uses it: the configuration of the image, and the files of all its layers in one folder.

/** Options of tar that keep extended attributes, because extended attributes contain the capabilities of programs. */
const PRESERVE_ATTRIBUTES = ['--xattrs', '--xattrs-include=*', '--preserve-permissions'];

export interface UnpackedImage {
  /** The name of the image, from the annotation `org.opencontainers.image.ref.name`. */
  readonly name: string;
  readonly rootfs: string;
  readonly config: ImageConfig;
  /** The texts of the index, the manifest and the configuration. The configuration includes the build history. */
  readonly metadataText: string;
  /** The paths of the files that have capabilities in any layer. */
  readonly filesWithCapabilities: readonly string[];
  /** The size in bytes of the compressed layers (`packed`) and of the unpacked files (`unpacked`). */
  readonly size: { readonly packed: number; readonly unpacked: number };
}

/** The unpacked images of Weir, one of each kind. */
export type UnpackedImages = Readonly<Record<'proxy' | 'controller' | 'redis', UnpackedImage>>;

export interface ImageConfig {
  readonly User?: string;
  readonly Entrypoint?: readonly string[];
  readonly Cmd?: readonly string[];
  readonly Env?: readonly string[];
  readonly WorkingDir?: string;
  readonly Labels?: Readonly<Record<string, string>>;
}

interface OciIndex {
  readonly manifests: readonly { readonly digest: string; readonly annotations: Readonly<Record<string, string>> }[];
}

interface OciManifest {
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
  const [descriptor] = (JSON.parse(indexText) as OciIndex).manifests;
  const manifestText = blob(descriptor?.digest ?? '');
  const { config, layers } = JSON.parse(manifestText) as OciManifest;
  for (const { digest } of layers)
    tar('--extract', '--file', blobPath(digest), '--directory', rootfs, ...PRESERVE_ATTRIBUTES);
  const listings = layers.map(({ digest }) => tar('--list', '-vv', '--file', blobPath(digest), ...PRESERVE_ATTRIBUTES));
  return {
    name: descriptor?.annotations['org.opencontainers.image.ref.name'] ?? '',
    rootfs,
    config: (JSON.parse(blob(config.digest)) as { config: ImageConfig }).config,
    metadataText: [indexText, manifestText, blob(config.digest)].join('\n'),
    filesWithCapabilities: listings.flatMap(parseCapabilityListing),
    size: {
      packed: layers.reduce((sum, { size }) => sum + size, 0),
      unpacked: sizeOf(rootfs),
    },
  };
}

function sizeOf(folder: string): number {
  return listImageFiles(folder).reduce((sum, { size }) => sum + size, 0);
}

/** Returns the paths of files with capabilities. In tar's listing, the extended attributes of a file follow the line of the file. */
function parseCapabilityListing(listing: string): string[] {
  const found = listing.matchAll(/(\S+)\n(?: +\w: .*\n)*? +x: +\d+ security\.capability$/gm);
  return [...found].map(([, path = '']) => path);
}

function tar(...args: string[]): string {
  return execFileSync('tar', args, { encoding: 'utf8', stdio: ['ignore', 'pipe', 'inherit'], maxBuffer: 1 << 26 });
}

// A file or folder in an unpacked image.
export interface ImageFile {
  /** The path relative to the root of the image, without a leading slash. */
  readonly path: string;
  readonly kind: 'file' | 'folder' | 'link' | 'other';
  readonly owner: string;
  readonly mode: number;
  readonly size: number;
}

/** Returns all files and folders. Does not follow links. */
export function listImageFiles(rootfs: string, below = ''): ImageFile[] {
  return readdirSync(join(rootfs, below), { withFileTypes: true }).flatMap((entry) => {
    const path = join(below, entry.name);
    const { uid, gid, mode, size } = lstatSync(join(rootfs, path));
    const kind = entry.isFile() ? 'file' : entry.isDirectory() ? 'folder' : entry.isSymbolicLink() ? 'link' : 'other';
    const file: ImageFile = { path, kind, owner: `${uid}:${gid}`, mode: mode & 0o7777, size };
    return kind === 'folder' ? [file, ...listImageFiles(rootfs, path)] : [file];
  });
}

/** Returns the folders of npm packages, including nested packages. */
export function npmPackageFolders(files: readonly ImageFile[]): string[] {
  const folder = /(?:^|\/)node_modules\/(?:@[^/]+\/)?[^/@]+$/;
  return files.filter(({ kind, path }) => kind === 'folder' && folder.test(path)).map(({ path }) => path);
}
