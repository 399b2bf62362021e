import assert from 'node:assert/strict';
import { test } from 'node:test';
import { spawnProcess } from '../src/index.ts';

const node = (script: string): { command: string; args: string[] } => ({
  command: process.execPath,
  args: ['-e', script],
});
const forever = 'setInterval(() => {}, 1000);';

test('a process is handed over when it says that it is ready, and its end is waited for', async () => {
  const child = await spawnProcess({ ...node(`console.log('ready'); ${forever}`), readyWhen: /ready/ });
  assert.equal(child.output(), 'ready\n');
  assert.deepEqual(await child.stop(), { code: null, signal: 'SIGTERM' });
});

test('one that ends before it is ready fails with the end of its output', async () => {
  const starting = spawnProcess({ ...node(`console.error('no such file'); process.exit(2)`), readyWhen: /ready/ });
  await assert.rejects(starting, /ended before it showed \/ready\/, exit code 2:\nno such file/);
});

test('one that is silent too long fails, and is ended', async () => {
  await assert.rejects(spawnProcess({ ...node(forever), readyWhen: /ready/, readyTimeoutMs: 50 }), /has not shown/);
});

test('a command that does not exist fails with its name', async () => {
  await assert.rejects(spawnProcess({ command: '/no/such/program', readyWhen: /ready/ }), /\/no\/such\/program/);
});

test('one that may exit tells how it did', async () => {
  const child = await spawnProcess({
    ...node(`console.log('data'); console.error('note'); process.exit(3)`),
    mayExit: true,
  });
  assert.deepEqual(await child.exited, { code: 3, signal: null });
  assert.equal(child.stdout(), 'data\n');
});

test('the end of a process that nobody asked for is an uncaught error, so that it fails the test that runs', async () => {
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
  assert.match(outer.output(), /sh ended by itself, exit code 5:\nready\nsorry/);
});

test('one that is told to end by a signal has not ended by itself', async () => {
  const child = await spawnProcess({ ...node(`console.log('ready'); ${forever}`), readyWhen: /ready/ });
  child.signal('SIGKILL');
  assert.deepEqual(await child.exited, { code: null, signal: 'SIGKILL' });
});

test('one that was forgotten does not keep the process that started it', async () => {
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

test('children end with the process that started them, even when that is killed', async () => {
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
  // tail --pid ends when the child has; -s is how often it looks
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
