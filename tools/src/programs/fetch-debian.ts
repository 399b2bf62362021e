import { createHash } from 'node:crypto';
import {
  chmodSync,
  existsSync,
  mkdirSync,
  readdirSync,
  renameSync,
  rmSync,
  statSync,
  utimesSync,
  writeFileSync,
} from 'node:fs';
import { dirname, join, relative } from 'node:path';
import { debianDirectory } from './cache-directory.ts';
import { runCommand } from './run-command.ts';

export type DebianProgram = {
  readonly name: string;
  readonly packages: readonly string[];
  readonly unlessInstalled?: readonly string[];
  readonly file: string;
  readonly firstArguments?: string;
  readonly variables?: Readonly<Record<string, string>>;
};

/**
 * Unpacks the Debian packages of a program, and the dependencies that the system lacks, into a folder of the cache. Writes a launcher
 * script that sets the library path. The folder gets its name only when it is complete. Reuses packages that an interrupted attempt
 * has downloaded. The caller must hold the lock of the cache.
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

/** Returns the folder of the downloaded packages. Its name depends on their versions: an earlier attempt may have left other versions. */
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
    // The package lists may be a day old, and the mirror may no longer have the versions that they name.
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

/** Writes a script that starts the program. Paths in the script are relative to the script, because the folder is renamed later. */
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

const DAY_MS = 24 * 60 * 60 * 1000;

/**
 * Runs apt with separate package lists, caches and settings. So apt needs no root, does not change the system, and works in new
 * containers without package lists. apt uses the sources, keys, proxies and the list of installed packages of the system.
 */
export class RootlessApt {
  readonly #directory: string;
  readonly #progress: (text: string) => void;

  constructor(directory: string, progress: (text: string) => void) {
    this.#directory = directory;
    this.#progress = progress;
    mkdirSync(join(directory, 'lists', 'partial'), { recursive: true });
    mkdirSync(join(directory, 'archives', 'partial'), { recursive: true });
    writeFileSync(this.#configFile, aptConfig(directory));
  }

  /** Returns the packages to download, each as `name=version`: `names`, and what the system lacks of `others` and all dependencies. */
  async missingPackages(names: readonly string[], others: readonly string[] = []): Promise<string[]> {
    const plan = await this.#apt(['install', '--simulate', '--no-install-recommends', ...names, ...others]);
    const found = [...plan.matchAll(/^Inst (\S+) (?:\[\S+\] )?\((\S+) /gm)].map(
      ([, what, version]) => `${what}=${version}`,
    );
    // Includes installed packages of `names`, because their programs may be too old or not on PATH.
    for (const name of names) {
      if (!found.some((each) => each.startsWith(`${name}=`) || each.startsWith(`${name}:`))) found.push(name);
    }
    // Leaves out the C library, because the C library must match the system's dynamic loader, which starts the program.
    return found.filter((each) => !/^(libc6|libc-bin|libc6-dev)(:\w+)?=/.test(each));
  }

  async download(packages: readonly string[], into: string): Promise<void> {
    mkdirSync(into, { recursive: true });
    await this.#apt(['download', ...packages], into);
  }

  /** Fetches the package lists if they are older than a day, or if `force` is true. */
  async update(options: { force?: boolean } = {}): Promise<void> {
    const stamp = join(this.#directory, 'updated');
    if (!options.force && existsSync(stamp) && Date.now() - statSync(stamp).mtimeMs < DAY_MS) return;
    this.#progress('fetching Debian package lists');
    try {
      await this.#apt(['update']);
    } catch (error) {
      // Continues if any list was fetched, because only one of several sources may be broken.
      const lists = readdirSync(join(this.#directory, 'lists')).filter((file) => /_Packages(\.\w+)?$/.test(file));
      if (lists.length === 0) throw error;
      this.#progress(`${(error as Error).message}; continuing with the fetched lists`);
    }
    writeFileSync(stamp, '');
    utimesSync(stamp, new Date(), new Date());
  }

  #apt(args: readonly string[], cwd: string = this.#directory): Promise<string> {
    const env = { ...process.env, LC_ALL: 'C', DEBIAN_FRONTEND: 'noninteractive' };
    return runCommand('apt-get', [...args, '--quiet', '--config-file', this.#configFile], { cwd, env });
  }

  get #configFile(): string {
    return join(this.#directory, 'apt.conf');
  }
}

/** Returns the settings that apt reads after the settings of the system. Clears hooks that change the system after an update. */
function aptConfig(directory: string): string {
  return `
#clear APT::Update::Pre-Invoke;
#clear APT::Update::Post-Invoke;
#clear APT::Update::Post-Invoke-Success;
Dir::State::Lists "${directory}/lists";
Dir::Cache "${directory}";
Dir::Cache::archives "archives";
Dir::Cache::pkgcache "packages.bin";
Dir::Cache::srcpkgcache "";
Dir::Log "${directory}/log";
Acquire::Languages "none";
Acquire::Retries "3";
Acquire::IndexTargets::deb::DEP-11::DefaultEnabled "false";
// apt as root would drop to the user _apt, who may not enter the home directory of root
APT::Sandbox::User "root";
`;
}
