/*
 * write-bill-of-materials.ts IMAGE ROOT WEIR: lists the Debian packages in the image's root folder ROOT and the npm packages in the folder
 * WEIR. Writes the list to WEIR/sbom.cdx.json. Runs during the image build on the image's Node. Imports only bill-of-materials.ts.
 */
import { readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { billOfMaterials, type ImageContents } from './bill-of-materials.ts';

const [, , image = '', root = '', weir = ''] = process.argv;
const bill = billOfMaterials(image, {
  npm: [...npmPackagesIn(join(weir, 'node_modules')), ...weirPackages()],
  debian: debianPackages(),
  release: /^VERSION_ID="?([\w.]+)/m.exec(readFileSync(join(root, 'etc/os-release'), 'utf8'))?.[1] ?? '',
  node: process.versions,
});
writeFileSync(join(weir, 'sbom.cdx.json'), `${JSON.stringify(bill, undefined, 2)}\n`);

/** Returns all packages in a folder node_modules, including nested packages. Skips links, because they lead to packages of Weir. */
function npmPackagesIn(folder: string): ImageContents['npm'][number][] {
  return foldersIn(folder).flatMap((name) => {
    const path = join(folder, name);
    if (name.startsWith('@')) return npmPackagesIn(path);
    return [readPackage(path), ...npmPackagesIn(join(path, 'node_modules'))];
  });
}

function weirPackages(): ImageContents['npm'][number][] {
  const folder = join(weir, 'packages');
  return foldersIn(folder).map((name) => readPackage(join(folder, name)));
}

function readPackage(path: string): ImageContents['npm'][number] {
  const { name, version, license } = JSON.parse(readFileSync(join(path, 'package.json'), 'utf8'));
  // In old packages, `license` is an object with the field `type` instead of a string.
  return { name, version, license: typeof license === 'object' ? license?.type : license };
}

function debianPackages(): ImageContents['debian'][number][] {
  const folder = join(root, 'var/lib/dpkg/status.d');
  return readdirSync(folder).map((name) => {
    const text = readFileSync(join(folder, name), 'utf8');
    const field = (key: string): string => new RegExp(`^${key}: (.*)$`, 'm').exec(text)?.[1] ?? '';
    return { name, version: field('Version'), architecture: field('Architecture') };
  });
}

function foldersIn(path: string): string[] {
  try {
    const entries = readdirSync(path, { withFileTypes: true });
    return entries.filter((entry) => entry.isDirectory()).map((entry) => entry.name);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return [];
    throw error;
  }
}
