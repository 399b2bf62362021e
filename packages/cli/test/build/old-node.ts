import { execFileSync } from 'node:child_process';
import { existsSync } from 'node:fs';
import { delimiter, join } from 'node:path';

/** A Node on the PATH that is older than what Weir needs; undefined where there is none. */
export function findOldNode(): string | undefined {
  const candidates = (process.env.PATH ?? '').split(delimiter).map((directory) => join(directory, 'node'));
  return candidates.find((path) => existsSync(path) && isOld(path));
}

function isOld(path: string): boolean {
  try {
    const [major = 0, minor = 0] = execFileSync(path, ['-p', 'process.versions.node'], { encoding: 'utf8' })
      .split('.')
      .map(Number);
    return major < 22 || (major === 22 && minor < 19);
  } catch {
    return false;
  }
}
