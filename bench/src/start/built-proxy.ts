import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import { REPOSITORY_ROOT } from '../report/work-tree.ts';

/** As in the images: from what `tsc` has written, which it writes now. Returns the program. */
export async function compileProxy(): Promise<string> {
  const tsc = join(REPOSITORY_ROOT, 'node_modules/typescript/bin/tsc');
  const compiler = spawn(process.execPath, [tsc, '-b', 'packages/proxy'], {
    cwd: REPOSITORY_ROOT,
    stdio: ['ignore', 2, 2],
  });
  const [code] = await once(compiler, 'exit');
  if (code !== 0) throw new Error('the proxy does not compile');
  return join(REPOSITORY_ROOT, 'packages/proxy/dist/src/main.js');
}
