import { readFileSync } from 'node:fs';

/**
 * Returns the version of the package that a module belongs to. `moduleUrl` is the `import.meta.url` of a module
 * directly in `src/` or `dist/src/`.
 */
export function packageVersion(moduleUrl: string): string {
  const up = moduleUrl.includes('/dist/') ? '../..' : '..';
  const text = readFileSync(new URL(`${up}/package.json`, moduleUrl), 'utf8');
  return String(JSON.parse(text).version);
}
