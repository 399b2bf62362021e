import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import { REPOSITORY_ROOT } from '../report/run-metadata.ts';

/** Compiles these packages in the same way as for the images; by default all programs of Weir. */
export async function compileWeir(
  packages: readonly string[] = ['controller', 'proxy', 'console', 'cli'],
): Promise<void> {
  const tsc = join(REPOSITORY_ROOT, 'node_modules/typescript/bin/tsc');
  const projects = packages.map((name) => `packages/${name}`);
  const compiler = spawn(process.execPath, [tsc, '-b', ...projects], {
    cwd: REPOSITORY_ROOT,
    stdio: ['ignore', 2, 2],
  });
  const [code] = await once(compiler, 'exit');
  if (code !== 0) throw new Error(`${projects.join(', ')}: the sources do not compile`);
}
