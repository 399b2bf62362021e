import { execFileSync } from 'node:child_process';
import { cpSync, existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';

const CHECKOUT: string = fileURLToPath(new URL('../../../../', import.meta.url));

/** The files of the checkout that images are made of, by their paths in it: what .dockerignore lets through and git knows or would add. */
export function buildContextFiles(): string[] {
  const admitted = readFileSync(join(CHECKOUT, '.dockerignore'), 'utf8').matchAll(/^!(.+)$/gm);
  const patterns = [...admitted].flatMap(([, path]) => [`:(glob)${path}`, `:(glob)${path}/**`]);
  const dockerfiles = ['.dockerignore', 'Dockerfile.proxy', 'Dockerfile.controller'];
  const args = ['ls-files', '-z', '--cached', '--others', '--exclude-standard', '--', ...dockerfiles, ...patterns];
  const listed = execFileSync('git', args, { cwd: CHECKOUT, encoding: 'utf8', maxBuffer: 1 << 26 });
  // one that was deleted and not yet committed is listed all the same
  return listed.split('\0').filter((path) => path !== '' && existsSync(join(CHECKOUT, path)));
}

export function readFromCheckout(path: string): Buffer {
  return readFileSync(join(CHECKOUT, path));
}

/** A copy, so that nobody's editor changes the sources in the middle of a build. */
export function copyBuildContext(into: string): void {
  for (const path of buildContextFiles()) cpSync(join(CHECKOUT, path), join(into, path));
}
