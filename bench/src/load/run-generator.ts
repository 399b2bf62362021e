import { basename } from 'node:path';
import { fileURLToPath } from 'node:url';
import { spawnProcess } from '@weir/testkit';

/** One of our generators to its end; returns what it reports on a line of its own. Throws with its last line when it does not. */
export async function runGenerator<T>(program: URL, args: readonly number[]): Promise<T> {
  const file = fileURLToPath(program);
  await using generator = await spawnProcess({
    command: process.execPath,
    args: ['--conditions=source', file, ...args.map(String)],
    name: basename(file),
    mayExit: true,
  });
  await generator.exited;
  const [, json] = /^report (\{.*\})$/m.exec(generator.stdout()) ?? [];
  if (json === undefined) {
    const [error] = /^\w*Error: .*$/m.exec(generator.output()) ?? ['it ended without a report'];
    throw new Error(`the generator failed: ${error}`);
  }
  return JSON.parse(json) as T;
}
