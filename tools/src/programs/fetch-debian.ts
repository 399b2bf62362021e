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
 * Unpacks a program's Debian packages, and the dependencies that the system lacks, below the cache, with a launcher script that
 * sets the library path. The folder is renamed into place when complete. Packages downloaded by an interrupted attempt are
 * reused. The caller must hold the lock of the cache.
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

/** Returns the folder with the packages, named by their versions: an interrupted attempt may have left older packages. */
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
    // Package lists from yesterday may name versions that the mirror no longer has.
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

/** The script uses paths relative to itself, because the folder is renamed later. */
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
 * Runs apt with its own package lists, caches and settings: apt then needs no root, leaves the system unchanged, and works in
 * fresh containers without package lists. It still uses the system's sources, keys, proxies and list of installed packages.
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

  /** Returns `names` and all dependencies of `names` and `others` that the system lacks, each as `name=version`. */
  async missingPackages(names: readonly string[], others: readonly string[] = []): Promise<string[]> {
    const plan = await this.#apt(['install', '--simulate', '--no-install-recommends', ...names, ...others]);
    const found = [...plan.matchAll(/^Inst (\S+) (?:\[\S+\] )?\((\S+) /gm)].map(
      ([, what, version]) => `${what}=${version}`,
    );
    // An installed package may be too old or not on PATH, so `names` are always fetched.
    for (const name of names) {
      if (!found.some((each) => each.startsWith(`${name}=`) || each.startsWith(`${name}:`))) found.push(name);
    }
    // The C library must match the system's dynamic loader, which starts the program.
    return found.filter((each) => !/^(libc6|libc-bin|libc6-dev)(:\w+)?=/.test(each));
  }

  async download(packages: readonly string[], into: string): Promise<void> {
    mkdirSync(into, { recursive: true });
    await this.#apt(['download', ...packages], into);
  }

  /** Fetches the package lists if they are older than a day, or always with `force`. */
  async update(options: { force?: boolean } = {}): Promise<void> {
    const stamp = join(this.#directory, 'updated');
    if (!options.force && existsSync(stamp) && Date.now() - statSync(stamp).mtimeMs < DAY_MS) return;
    this.#progress('fetching Debian package lists');
    try {
      await this.#apt(['update']);
    } catch (error) {
      // One of several sources may be broken: continue if any list was fetched.
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

/** apt reads this file after the system's settings. The cleared hooks would change the system after an update. */
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
