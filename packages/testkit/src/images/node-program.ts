import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { dirname, join } from 'node:path';

/** The program of the npm package `node`: itself, not the launcher that `mend-node` may have put in its place. */
export function npmNodeBinary(): { readonly path: string; readonly version: string } {
  const description = createRequire(import.meta.url).resolve('node/package.json');
  const { version } = JSON.parse(readFileSync(description, 'utf8')) as { version: string };
  return { path: join(dirname(description), 'bin', 'node'), version };
}
