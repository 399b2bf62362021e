import { existsSync, mkdirSync, readdirSync, statSync, utimesSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { runCommand } from './run.ts';

const DAY_MS = 24 * 60 * 60 * 1000;

/**
 * apt with package lists, caches and settings of its own: needs no root, changes nothing on the system, and works where the
 * system has no lists, as in a fresh container. The system's sources, keys, proxies and list of installed packages are used.
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

  /** The packages, and those of the others and of all their dependencies that the system lacks, each as `name=version`. */
  async missingPackages(names: readonly string[], others: readonly string[] = []): Promise<string[]> {
    const plan = await this.#apt(['install', '--simulate', '--no-install-recommends', ...names, ...others]);
    const found = [...plan.matchAll(/^Inst (\S+) (?:\[\S+\] )?\((\S+) /gm)].map(
      ([, what, version]) => `${what}=${version}`,
    );
    // installed already, but not in a version that is usable or not on PATH: then its own package is what is wanted
    for (const name of names) {
      if (!found.some((each) => each.startsWith(`${name}=`) || each.startsWith(`${name}:`))) found.push(name);
    }
    // the C library must fit the system's dynamic loader, which is the one that starts the program
    return found.filter((each) => !/^(libc6|libc-bin|libc6-dev)(:\w+)?=/.test(each));
  }

  async download(packages: readonly string[], into: string): Promise<void> {
    mkdirSync(into, { recursive: true });
    await this.#apt(['download', ...packages], into);
  }

  /** Fetches the package lists if they are older than a day, or always when `force` says that they led nowhere. */
  async update(options: { force?: boolean } = {}): Promise<void> {
    const stamp = join(this.#directory, 'updated');
    if (!options.force && existsSync(stamp) && Date.now() - statSync(stamp).mtimeMs < DAY_MS) return;
    this.#progress('fetching the package lists of Debian');
    try {
      await this.#apt(['update']);
    } catch (error) {
      // one broken source among several: go on with the lists that came, if any did
      const lists = readdirSync(join(this.#directory, 'lists')).filter((file) => /_Packages(\.\w+)?$/.test(file));
      if (lists.length === 0) throw error;
      this.#progress(`${(error as Error).message}; going on with the lists that came`);
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

/** Read by apt after the system's own settings. The hooks cleared here would change the system after an update. */
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
