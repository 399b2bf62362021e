import { spawnSync } from 'node:child_process';

export const REPOSITORY_ROOT: string = new URL('../../../', import.meta.url).pathname;

/** Which sources are measured. Outside of git, as in a tarball, the commit is `unknown`. */
export function readWorkTree(): { readonly commit: string; readonly modified: boolean } {
  const commit = git('rev-parse', '--short', 'HEAD') || 'unknown';
  return { commit, modified: git('status', '--porcelain', '--', 'packages', 'bench/src') !== '' };
}

function git(...args: string[]): string {
  return spawnSync('git', args, { cwd: REPOSITORY_ROOT, encoding: 'utf8' }).stdout?.trim() ?? '';
}
