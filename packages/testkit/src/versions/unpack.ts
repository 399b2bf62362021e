import { execFileSync } from 'node:child_process';
import { existsSync, lstatSync, mkdirSync, readdirSync, readFileSync, symlinkSync } from 'node:fs';
import { dirname, join } from 'node:path';

export type UnpackCommitOptions = { readonly into: string; readonly paths: readonly string[] };

/** The files of a commit, as git has them. */
export function unpackCommit(checkout: string, commit: string, { into, paths }: UnpackCommitOptions): void {
  const archive = execFileSync('git', ['archive', '--format=tar', commit, '--', ...paths], {
    cwd: checkout,
    maxBuffer: 1 << 28,
  });
  execFileSync('tar', ['-x', '-C', into], { input: archive });
}

/**
 * Gives a tree the modules of another folder, by links, so that they may be shared; but its own packages are its own: by the links of that
 * folder a program of one version would load the other's.
 */
export function linkModules(tree: string, from: string): void {
  const packages = readdirSync(join(tree, 'packages')).map((name) => join('packages', name));
  for (const folder of ['.', ...packages]) {
    const modules = join(from, folder, 'node_modules');
    for (const name of installedPackages(modules))
      symlinkTo(join(modules, name), join(tree, folder, 'node_modules', name));
  }
  for (const path of packages) symlinkTo(join(tree, path), join(tree, 'node_modules', packageName(join(tree, path))));
}

/** Packages of others: npm links those of the workspace. */
function installedPackages(modules: string): string[] {
  if (!existsSync(modules)) return [];
  const names = readdirSync(modules).flatMap((name) =>
    name.startsWith('@') ? readdirSync(join(modules, name)).map((scoped) => `${name}/${scoped}`) : [name],
  );
  return names.filter((name) => !name.startsWith('.') && !lstatSync(join(modules, name)).isSymbolicLink());
}

function symlinkTo(target: string, path: string): void {
  mkdirSync(dirname(path), { recursive: true });
  symlinkSync(target, path);
}

function packageName(folder: string): string {
  return (JSON.parse(readFileSync(join(folder, 'package.json'), 'utf8')) as { name: string }).name;
}
