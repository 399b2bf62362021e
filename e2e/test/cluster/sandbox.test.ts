// Tests that a sandbox for tests with real nodes leaves no process, file or control group behind, no matter how the sandbox ends.
import assert from 'node:assert/strict';
import { existsSync, globSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, test } from 'node:test';
import { eventually, type SpawnedProcess, spawnProcess, temporaryDirectory } from '@weir/testkit';
import { requireSandbox } from '@weir/tools';

describe('a sandbox', { ...requireSandbox(), timeout: 60_000 }, () => {
  for (const signal of ['SIGTERM', 'SIGKILL'] as const) {
    test(`removes its processes and control groups after ${signal}`, async () => {
      await using folder = temporaryDirectory('sandbox');
      const { sandbox, name } = await startInner(folder.path);
      assert.ok(traces(name).length >= 2);
      await sandbox.stop(signal);
      await eventually(() => assert.deepEqual(traces(name), []));
    });
  }

  test('removes its processes and control groups when its tests end, and exits with their code', async () => {
    await using folder = temporaryDirectory('sandbox');
    const { sandbox, name } = await startInner(folder.path, 'exits');
    assert.deepEqual(await sandbox.exited, { code: 3, signal: null });
    await eventually(() => assert.deepEqual(traces(name), []));
  });

  test('hides writes to system folders from the host', async () => {
    await using folder = temporaryDirectory('sandbox');
    const { sandbox, name } = await startInner(folder.path);
    await sandbox.waitForOutput(/reads its own/);
    assert.ok(!existsSync(`/var/lib/${name}`));
    await sandbox.stop();
  });
});

/** Starts a test file outside of a sandbox. The test file moves itself into a sandbox. */
async function startInner(
  folder: string,
  behaviour: 'exits' | 'runs' = 'runs',
): Promise<{ sandbox: SpawnedProcess; name: string }> {
  const file = join(folder, 'inner.test.ts');
  writeFileSync(file, innerFile);
  const { WEIR_SANDBOX: _, NODE_TEST_CONTEXT: __, ...env } = process.env;
  const sandbox = await spawnProcess({
    command: process.execPath,
    args: ['--conditions=source', file, behaviour],
    env,
    mayExit: true,
    readyWhen: /^up weir-\w+$/m,
  });
  return { sandbox, name: /^up (\S+)$/m.exec(sandbox.output())?.[1] ?? '' };
}

/** The text of a test file that creates a process with its own session and control group, and a file in a system folder. */
const innerFile = `
import { spawn } from 'node:child_process';
import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { insideSandbox } from '${import.meta.resolve('@weir/tools')}';
insideSandbox();
const { name } = JSON.parse(process.env.WEIR_SANDBOX);
const tree = existsSync('/sys/fs/cgroup/memory') ? '/sys/fs/cgroup/memory' : '/sys/fs/cgroup';
mkdirSync(tree + '/k8s.io');
const child = spawn('sh', ['-c', ': ' + name + '; sleep 1000; true'], { detached: true, stdio: 'ignore' });
writeFileSync(tree + '/k8s.io/cgroup.procs', String(child.pid));
writeFileSync('/var/lib/' + name, 'its own');
console.log('up ' + name);
console.log('reads ' + readFileSync('/var/lib/' + name, 'utf8'));
if (process.argv[2] === 'exits') process.exit(3);
setInterval(() => {}, 1000);
`;

/** Returns the processes and control groups of the sandbox that the host can see. */
function traces(name: string): string[] {
  const groups = globSync(`/sys/fs/cgroup/{,*/}**/${name}`);
  const processes = globSync('/proc/[0-9]*/cmdline').filter((file) => readIfThere(file).includes(`: ${name};`));
  return [...groups, ...processes];
}

function readIfThere(file: string): string {
  try {
    return readFileSync(file, 'utf8');
  } catch {
    return '';
  }
}
