/*
 * write-bill-of-materials.ts IMAGE ROOT WEIR: looks at what lies in the folders that become the root of the image and its /weir, and
 * writes it down in the latter as sbom.cdx.json. Runs while an image is built, on the Node that goes into it; needs nothing but the file beside it.
 */
import { readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { billOfMaterials, type Contents } from './bill-of-materials.ts';

const [, , image = '', root = '', weir = ''] = process.argv;
const bill = billOfMaterials(image, {
  npm: [...packagesIn(join(weir, 'node_modules')), ...ours()],
  debian: debianPackages(),
  release: /^VERSION_ID="?([\w.]+)/m.exec(readFileSync(join(root, 'etc/os-release'), 'utf8'))?.[1] ?? '',
  node: process.versions,
});
writeFileSync(join(weir, 'sbom.cdx.json'), `${JSON.stringify(bill, undefined, 2)}\n`);

/** With those that they bring along for themselves; links are ours. */
function packagesIn(folder: string): Contents['npm'][number][] {
  return foldersIn(folder).flatMap((name) => {
    const path = join(folder, name);
    if (name.startsWith('@')) return packagesIn(path);
    return [packageAt(path), ...packagesIn(join(path, 'node_modules'))];
  });
}

function ours(): Contents['npm'][number][] {
  const folder = join(weir, 'packages');
  return foldersIn(folder).map((name) => packageAt(join(folder, name)));
}

function packageAt(path: string): Contents['npm'][number] {
  const { name, version, license } = JSON.parse(readFileSync(join(path, 'package.json'), 'utf8'));
  // old ones have an object
  return { name, version, license: typeof license === 'object' ? license?.type : license };
}

function debianPackages(): Contents['debian'][number][] {
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
