import { readFileSync } from 'node:fs';

/** The version of the package whose `src/` or `dist/src/` a module lies in itself, not deeper; `moduleUrl` is its `import.meta.url`. */
export function packageVersion(moduleUrl: string): string {
  const up = moduleUrl.includes('/dist/') ? '../..' : '..';
  const text = readFileSync(new URL(`${up}/package.json`, moduleUrl), 'utf8');
  return String(JSON.parse(text).version);
}
