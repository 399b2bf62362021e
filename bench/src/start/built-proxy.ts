import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import { root } from '../report/work-tree.ts';

/** As in the images: from what `tsc` has written, which it writes now. Returns the program. */
export async function buildProxy(): Promise<string> {
  const tsc = join(root, 'node_modules/typescript/bin/tsc');
  const compiler = spawn(process.execPath, [tsc, '-b', 'packages/proxy'], { cwd: root, stdio: ['ignore', 2, 2] });
  const [code] = await once(compiler, 'exit');
  if (code !== 0) throw new Error('the proxy does not compile');
  return join(root, 'packages/proxy/dist/src/main.js');
}
