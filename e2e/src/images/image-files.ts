// What lies in an unpacked image.
import { lstatSync, readdirSync } from 'node:fs';
import { join } from 'node:path';

export interface ImageFile {
  /** From the root of the image, without a slash at its beginning. */
  readonly path: string;
  readonly kind: 'file' | 'folder' | 'link' | 'other';
  readonly owner: string;
  readonly mode: number;
  readonly size: number;
}

/** Without following links. */
export function listImageFiles(rootfs: string, below = ''): ImageFile[] {
  return readdirSync(join(rootfs, below), { withFileTypes: true }).flatMap((entry) => {
    const path = join(below, entry.name);
    const { uid, gid, mode, size } = lstatSync(join(rootfs, path));
    const kind = entry.isFile() ? 'file' : entry.isDirectory() ? 'folder' : entry.isSymbolicLink() ? 'link' : 'other';
    const file: ImageFile = { path, kind, owner: `${uid}:${gid}`, mode: mode & 0o7777, size };
    return kind === 'folder' ? [file, ...listImageFiles(rootfs, path)] : [file];
  });
}

/** The folders of npm packages, at whatever depth. */
export function npmPackageFolders(files: readonly ImageFile[]): string[] {
  const folder = /(?:^|\/)node_modules\/(?:@[^/]+\/)?[^/@]+$/;
  return files.filter(({ kind, path }) => kind === 'folder' && folder.test(path)).map(({ path }) => path);
}
