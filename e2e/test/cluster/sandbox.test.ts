// What tests with real nodes run in leaves nothing behind, however it ends.
import assert from 'node:assert/strict';
import { existsSync, globSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, test } from 'node:test';
import { eventually, type SpawnedProcess, spawnProcess, temporaryDirectory } from '@weir/testkit';
import { requireSandbox } from '@weir/tools';

describe('a machine within this one', { ...requireSandbox(), timeout: 60_000 }, () => {
  for (const signal of ['SIGTERM', 'SIGKILL'] as const) {
    test(`takes all that is in it along when it is ended by ${signal}`, async () => {
      await using folder = temporaryDirectory('machine');
      const { machine, name } = await startInner(folder.path);
      assert.ok(traces(name).length >= 2);
      await machine.stop(signal);
      await eventually(() => assert.deepEqual(traces(name), []));
    });
  }

  test('takes all that is in it along when its tests are over, and ends as they ended', async () => {
    await using folder = temporaryDirectory('machine');
    const { machine, name } = await startInner(folder.path, 'ends by itself');
    assert.deepEqual(await machine.exited, { code: 3, signal: null });
    await eventually(() => assert.deepEqual(traces(name), []));
  });

  test('keeps what is written to its system folders to itself', async () => {
    await using folder = temporaryDirectory('machine');
    const { machine, name } = await startInner(folder.path);
    await machine.waitForOutput(/reads its own/);
    assert.ok(!existsSync(`/var/lib/${name}`));
    await machine.stop();
  });
});

/** A test file of its own, outside of which we stand. */
async function startInner(
  folder: string,
  how: 'ends by itself' | 'goes on' = 'goes on',
): Promise<{ machine: SpawnedProcess; name: string }> {
  const file = join(folder, 'inner.test.ts');
  writeFileSync(file, innerFile);
  const { WEIR_MACHINE: _, NODE_TEST_CONTEXT: __, ...env } = process.env;
  const machine = await spawnProcess({
    command: process.execPath,
    args: ['--conditions=source', file, how],
    env,
    mayExit: true,
    readyWhen: /^up weir-\w+$/m,
  });
  return { machine, name: /^up (\S+)$/m.exec(machine.output())?.[1] ?? '' };
}

/** A process that has left its session, in a control group, and a file where containerd would write one. */
const innerFile = `
import { spawn } from 'node:child_process';
import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { insideMachine } from '${import.meta.resolve('@weir/testkit')}';
insideMachine();
const { name } = JSON.parse(process.env.WEIR_MACHINE);
const tree = existsSync('/sys/fs/cgroup/memory') ? '/sys/fs/cgroup/memory' : '/sys/fs/cgroup';
mkdirSync(tree + '/k8s.io');
const child = spawn('sh', ['-c', ': ' + name + '; sleep 1000; true'], { detached: true, stdio: 'ignore' });
writeFileSync(tree + '/k8s.io/cgroup.procs', String(child.pid));
writeFileSync('/var/lib/' + name, 'its own');
console.log('up ' + name);
console.log('reads ' + readFileSync('/var/lib/' + name, 'utf8'));
if (process.argv[2] === 'ends by itself') process.exit(3);
setInterval(() => {}, 1000);
`;

/** Processes and control groups of the machine that are visible from here. */
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
