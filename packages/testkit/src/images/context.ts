import { execFileSync } from 'node:child_process';
import { cpSync, existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';

const checkout: string = fileURLToPath(new URL('../../../../', import.meta.url));

/** The files of the checkout that images are made of, by their paths in it: what .dockerignore lets through and git knows or would add. */
export function contextFiles(): string[] {
  const admitted = readFileSync(join(checkout, '.dockerignore'), 'utf8').matchAll(/^!(.+)$/gm);
  const patterns = [...admitted].flatMap(([, path]) => [`:(glob)${path}`, `:(glob)${path}/**`]);
  const dockerfiles = ['.dockerignore', 'Dockerfile.proxy', 'Dockerfile.controller'];
  const args = ['ls-files', '-z', '--cached', '--others', '--exclude-standard', '--', ...dockerfiles, ...patterns];
  const listed = execFileSync('git', args, { cwd: checkout, encoding: 'utf8', maxBuffer: 1 << 26 });
  // one that was deleted and not yet committed is listed all the same
  return listed.split('\0').filter((path) => path !== '' && existsSync(join(checkout, path)));
}

export function readFromCheckout(path: string): Buffer {
  return readFileSync(join(checkout, path));
}

/** A copy, so that nobody's editor changes the sources in the middle of a build. */
export function copyContext(into: string): void {
  for (const path of contextFiles()) cpSync(join(checkout, path), join(into, path));
}
