import { readdirSync, rmSync, statSync } from 'node:fs';
import { dirname, join } from 'node:path';

/** Removes the folders beside this one that were used longest ago, so that `count` of them are left; whoever uses one touches it. */
export function keepMostRecent(folder: string, count: number): void {
  const around = dirname(folder);
  const others = readdirSync(around)
    .map((name) => join(around, name))
    .filter((path) => path !== folder)
    .map((path) => ({ path, usedMs: statSync(path).mtimeMs }))
    .sort((a, b) => b.usedMs - a.usedMs);
  for (const { path } of others.slice(count - 1)) rmSync(path, { recursive: true, force: true });
}
