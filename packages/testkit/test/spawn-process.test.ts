import assert from 'node:assert/strict';
import { test } from 'node:test';
import { spawnProcess } from '../src/index.ts';

const node = (script: string): { command: string; args: string[] } => ({
  command: process.execPath,
  args: ['-e', script],
});
const forever = 'setInterval(() => {}, 1000);';

test('resolves when the process is ready, and stop waits for its exit', async () => {
  const child = await spawnProcess({ ...node(`console.log('ready'); ${forever}`), readyWhen: /ready/ });
  assert.equal(child.output(), 'ready\n');
  assert.deepEqual(await child.stop(), { code: null, signal: 'SIGTERM' });
});

test('fails with the last output of a process that exits before it is ready', async () => {
  const starting = spawnProcess({ ...node(`console.error('no such file'); process.exit(2)`), readyWhen: /ready/ });
  await assert.rejects(starting, /exited before its output matched \/ready\/, exit code 2:\nno such file/);
});

test('kills a process that is not ready in time', async () => {
  await assert.rejects(spawnProcess({ ...node(forever), readyWhen: /ready/, readyTimeoutMs: 50 }), /did not print/);
});

test('names a command that does not exist', async () => {
  await assert.rejects(spawnProcess({ command: '/no/such/program', readyWhen: /ready/ }), /\/no\/such\/program/);
});

test('reports the exit code of a process that may exit', async () => {
  const child = await spawnProcess({
    ...node(`console.log('data'); console.error('note'); process.exit(3)`),
    mayExit: true,
  });
  assert.deepEqual(await child.exited, { code: 3, signal: null });
  assert.equal(child.stdout(), 'data\n');
});

test('an unexpected exit is an uncaught error', async () => {
  const script = `
    import { spawnProcess } from '${new URL('../src/index.ts', import.meta.url)}';
    await spawnProcess({ command: 'sh', args: ['-c', 'echo ready; sleep 0.05; echo sorry; exit 5'], readyWhen: /ready/ });
    setInterval(() => {}, 1000);`;
  const outer = await spawnProcess({
    command: process.execPath,
    args: ['--input-type=module', '-e', script],
    mayExit: true,
  });
  assert.equal((await outer.exited).code, 1);
  assert.match(outer.output(), /sh exited unexpectedly, exit code 5:\nready\nsorry/);
});

test('an exit after a signal is expected', async () => {
  const child = await spawnProcess({ ...node(`console.log('ready'); ${forever}`), readyWhen: /ready/ });
  child.signal('SIGKILL');
  assert.deepEqual(await child.exited, { code: null, signal: 'SIGKILL' });
});

test('a forgotten child does not keep its parent alive', async () => {
  const script = `
    import { spawnProcess } from '${new URL('../src/index.ts', import.meta.url)}';
    await spawnProcess({ command: process.execPath, args: ['-e', "console.log('ready'); setInterval(() => {}, 1000)"], readyWhen: /ready/ });
    console.log('done');`;
  const outer = await spawnProcess({
    command: process.execPath,
    args: ['--input-type=module', '-e', script],
    mayExit: true,
  });
  assert.deepEqual(await outer.exited, { code: 0, signal: null });
  assert.equal(outer.stdout(), 'done\n');
});

test('children die with their parent, even if SIGKILL ends the parent', async () => {
  const script = `
    import { spawnProcess } from '${new URL('../src/index.ts', import.meta.url)}';
    const child = await spawnProcess({ command: process.execPath, args: ['-e', "console.log('ready'); setInterval(() => {}, 1000)"], readyWhen: /ready/ });
    console.log('child=' + child.pid);
    setInterval(() => {}, 1000);`;
  const outer = await spawnProcess({
    command: process.execPath,
    args: ['--input-type=module', '-e', script],
    readyWhen: /child=\d+/,
  });
  const pid = Number(/child=(\d+)/.exec(outer.output())?.[1]);
  assert.ok(isRunning(pid));
  // `tail --pid` exits when the child has exited. `-s` sets the polling interval in seconds.
  const watcher = await spawnProcess({
    command: 'tail',
    args: ['-s', '0.02', '-f', '/dev/null', `--pid=${pid}`],
    mayExit: true,
  });
  await outer.stop('SIGKILL');
  await watcher.exited;
  assert.ok(!isRunning(pid));
});

function isRunning(pid: number): boolean {
  try {
    return process.kill(pid, 0);
  } catch {
    return false;
  }
}
