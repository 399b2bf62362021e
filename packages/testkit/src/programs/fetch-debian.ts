import { createHash } from 'node:crypto';
import { chmodSync, mkdirSync, readdirSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { dirname, join, relative } from 'node:path';
import { debianDirectory } from './cache-directory.ts';
import { RootlessApt } from './private-apt.ts';
import { runCommand } from './run.ts';

export type DebianProgram = {
  readonly name: string;
  readonly packages: readonly string[];
  readonly unlessInstalled?: readonly string[];
  readonly file: string;
  readonly firstArguments?: string;
  readonly variables?: Readonly<Record<string, string>>;
};

/**
 * Unpacks a program's Debian packages, and those that they need and the system lacks, below the cache, beside a small
 * script that starts it with these libraries. The finished folder appears by one rename; the downloaded packages of an
 * interrupted attempt are used by the next. To be called under the lock of the cache.
 */
export async function fetchDebian(program: DebianProgram, progress: (text: string) => void): Promise<void> {
  const base = debianDirectory();
  const home = join(base, program.name);
  const archives = join(base, `${program.name}.archives`);
  const scratch = join(base, `${program.name}.unpacking`);
  const plan = await downloadPackages(program, { base, archives, progress });
  rmSync(scratch, { recursive: true, force: true });
  await unpackPackages(plan, join(scratch, 'root'));
  writeLauncher(scratch, program);
  rmSync(home, { recursive: true, force: true });
  renameSync(scratch, home);
  rmSync(archives, { recursive: true, force: true });
}

/** Returns the folder with the packages, which is named by their versions: an interrupted attempt may have left older ones. */
async function downloadPackages(
  program: DebianProgram,
  { base, archives, progress }: { base: string; archives: string; progress: (text: string) => void },
): Promise<string> {
  const apt = new RootlessApt(join(base, 'apt'), progress);
  const attempt = async (): Promise<string> => {
    const packages = await apt.missingPackages(program.packages, program.unlessInstalled);
    const folder = join(archives, createHash('sha256').update(packages.join(' ')).digest('hex').slice(0, 16));
    progress(`downloading ${packages.length} Debian package${packages.length === 1 ? '' : 's'}`);
    await apt.download(packages, folder);
    return folder;
  };
  await apt.update();
  try {
    return await attempt();
  } catch {
    // lists of yesterday may name versions that the mirror has dropped since
    await apt.update({ force: true });
    return attempt();
  }
}

async function unpackPackages(archives: string, root: string): Promise<void> {
  mkdirSync(root, { recursive: true });
  for (const file of readdirSync(archives).filter((name) => name.endsWith('.deb'))) {
    await runCommand('dpkg-deb', ['--extract', join(archives, file), root]);
  }
}

/** Paths relative to the script itself: the folder is renamed after it is written. */
function writeLauncher(scratch: string, program: DebianProgram): void {
  const root = join(scratch, 'root');
  const folders = libraryFolders(root).map((folder) => `$root/${relative(root, folder)}`);
  const first = program.firstArguments === undefined ? '' : ` ${program.firstArguments}`;
  const variables = Object.entries(program.variables ?? {}).map(([key, value]) => `export ${key}="${value}"\n`);
  const script = `#!/bin/sh
root=\${0%/*}/../root
LD_LIBRARY_PATH=${folders.join(':')}\${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}
export LD_LIBRARY_PATH
${variables.join('')}exec "$root/${program.file}"${first} "$@"
`;
  const path = join(scratch, 'bin', program.name);
  mkdirSync(dirname(path), { recursive: true });
  writeFileSync(path, script);
  chmodSync(path, 0o755);
}

function libraryFolders(root: string): string[] {
  const libraries = readdirSync(root, { recursive: true, withFileTypes: true }).filter(
    (entry) => /\.so(\.[\d.]+)?$/.test(entry.name) && !entry.isDirectory(),
  );
  return [...new Set(libraries.map((entry) => entry.parentPath))].sort();
}
