import { readFileSync } from 'node:fs';

/** The version of the package, both from `src/` and from `dist/src/`. */
export function version(): string {
  const up = import.meta.url.includes('/dist/') ? '../..' : '..';
  const text = readFileSync(new URL(`${up}/package.json`, import.meta.url), 'utf8');
  return String(JSON.parse(text).version);
}
