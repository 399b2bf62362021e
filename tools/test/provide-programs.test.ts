import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { chmodSync, existsSync, mkdirSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, test } from 'node:test';
import { spawnProcess, temporaryDirectory } from '@weir/testkit';
import { catalog, goBuilds } from '../src/programs/catalog.ts';
import { programsToProvide, requirementsOf } from '../src/test-runner/requirements.ts';
import { debianRepository } from './debian-repository.ts';

const isDebian = hasCommand('apt-get') && hasCommand('dpkg-deb');

/** It finds its library by the path that the launcher sets, as a program finds its shared objects. */
const WRK_PACKAGE = {
  name: 'wrk',
  depends: 'libweirtest9',
  files: { 'usr/bin/wrk': '#!/bin/sh\nIFS=:; cd $LD_LIBRARY_PATH; echo "wrk 9.9 with $(cat libweirtest.so.9)"\n' },
};
const LIBRARY_PACKAGE = { name: 'libweirtest9', files: { 'usr/lib/weirtest/libweirtest.so.9': 'its library\n' } };

const index = new URL('../src/index.ts', import.meta.url);

describe('a program that is missing', () => {
  test('comes from its Debian package, with the packages that it needs, once, though two processes ask at the same time', {
    skip: isDebian ? false : 'needs apt-get and dpkg-deb',
  }, async () => {
    await using folder = temporaryDirectory('repository');
    const env = {
      PATH: pathWithout('wrk', folder.path),
      WEIR_CACHE: join(folder.path, 'cache'),
      ...debianRepository(join(folder.path, 'debian'), [WRK_PACKAGE, LIBRARY_PACKAGE]),
    };
    const both = await Promise.all([provide('wrk', env), provide('wrk', env)]);
    for (const { program } of both) {
      assert.deepEqual([program.kind, program.version], ['available', '9.9']);
      assert.ok(program.path.startsWith(env.WEIR_CACHE), `${program.path} is in the cache`);
      assert.equal(spawnSync(program.path, { encoding: 'utf8' }).stdout, 'wrk 9.9 with its library\n');
    }
    const fetches = both.filter(({ progress }) => /downloading 2 Debian packages/.test(progress));
    assert.equal(fetches.length, 1);
  });

  test('comes with the module of another package, and is started with it', {
    skip: isDebian ? false : 'needs apt-get and dpkg-deb',
  }, async () => {
    await using folder = temporaryDirectory('repository');
    const server = { name: 'nginx', files: { 'usr/sbin/nginx': '#!/bin/sh\necho "nginx/9.9 with $2"\n' } };
    const module = {
      name: 'libnginx-mod-stream',
      files: { 'usr/lib/nginx/modules/ngx_stream_module.so': 'module\n' },
    };
    const env = {
      PATH: pathWithout('nginx-stream', folder.path),
      WEIR_CACHE: join(folder.path, 'cache'),
      ...debianRepository(join(folder.path, 'debian'), [server, module]),
    };
    const { program } = await provide('nginx-stream', env);
    assert.deepEqual([program.kind, program.version], ['available', '9.9']);
    const said = spawnSync(program.path, ['-v'], { encoding: 'utf8' }).stdout;
    const [, path = ''] = /^nginx\/9\.9 with load_module (\/.+\.so);$/m.exec(said) ?? [];
    assert.equal(readFileSync(path, 'utf8'), 'module\n');
  });

  test('comes with what it looks for at a place of the system, and is told where that is now', {
    skip: isDebian ? false : 'needs apt-get and dpkg-deb',
  }, async () => {
    await using folder = temporaryDirectory('repository');
    const script = '#!/bin/sh\necho "debootstrap 9.9 with $(cat $DEBOOTSTRAP_DIR/functions), $(weirtest-fetch)"\n';
    const packages = [
      {
        name: 'debootstrap',
        depends: 'weirtest-fetch',
        files: { 'usr/sbin/debootstrap': script, 'usr/share/debootstrap/functions': 'its functions' },
      },
      { name: 'weirtest-fetch', files: { 'usr/bin/weirtest-fetch': '#!/bin/sh\necho "what it starts"\n' } },
      { name: 'debian-archive-keyring', files: { 'usr/share/keyrings/debian-archive-keyring.gpg': 'keys' } },
    ];
    const env = {
      PATH: pathWithout('debootstrap', folder.path),
      WEIR_CACHE: join(folder.path, 'cache'),
      ...debianRepository(join(folder.path, 'debian'), packages),
    };
    const { program } = await provide('debootstrap', env);
    assert.equal(program.kind, 'available', program.reason);
    const said = spawnSync(program.path, { encoding: 'utf8', env: { PATH: env.PATH } }).stdout;
    assert.equal(said, 'debootstrap 9.9 with its functions, what it starts\n');
  });

  test('is said to be missing when no repository has it', { skip: isDebian ? false : 'needs apt-get' }, async () => {
    await using folder = temporaryDirectory('repository');
    const env = {
      PATH: pathWithout('wrk', folder.path),
      WEIR_CACHE: join(folder.path, 'cache'),
      ...debianRepository(join(folder.path, 'debian'), [LIBRARY_PACKAGE]),
    };
    const { program } = await provide('wrk', env);
    assert.equal(program.kind, 'missing');
    assert.match(program.reason, /Unable to locate package wrk/);
  });

  test('is named with the reason and the line that gets it, where there is nothing to fetch it with', async () => {
    await using cache = temporaryDirectory('cache');
    const { program } = await provide('wrk', { WEIR_CACHE: cache.path, PATH: cache.path });
    assert.deepEqual(program, {
      kind: 'missing',
      name: 'wrk',
      reason: 'there is no apt-get on PATH',
      remedy: 'apt-get install wrk',
    });
  });

  test('is missing too when it is there in a version too old', async () => {
    await using folder = temporaryDirectory('old');
    const redis = join(folder.path, 'redis-server');
    writeFileSync(redis, '#!/bin/sh\necho "Redis server v=6.0.16"\n');
    chmodSync(redis, 0o755);
    const { program } = await evaluate(`findProgram('redis-server')`, { WEIR_CACHE: folder.path, PATH: folder.path });
    assert.equal(program.kind, 'missing');
    assert.match(program.reason, /redis-server is 6\.0\.16, older than 7\.0/);
    assert.equal(program.remedy, 'apt-get install redis-server');
  });

  test('skips the tests that require it, and fails them under WEIR_REQUIRE=all', async () => {
    await using cache = temporaryDirectory('cache');
    const bare = { WEIR_CACHE: cache.path, PATH: cache.path };
    const { program: requirement } = await evaluate(`requireProgram('redis')`, bare);
    assert.match(requirement.skip, /^redis-server is missing \(.*\); to get it: apt-get install redis-server$/);
    await assert.rejects(
      evaluate(`requireProgram('redis')`, { ...bare, WEIR_REQUIRE: 'all' }),
      /WEIR_REQUIRE=all, but redis-server/,
    );
  });
});

test('what is built from Go modules is what the catalog names', () => {
  const { 'echo-pod': ours, ...others } = goBuilds;
  for (const [build, { folder, version, extraPackages = [] }] of Object.entries(others)) {
    const read = (file: string): string => readFileSync(new URL(`../go/${folder}/${file}`, import.meta.url), 'utf8');
    assert.match(read('go.mod'), new RegExp(`^(?:require |\\t)\\S+ v${version.replaceAll('.', '\\.')}$`, 'm'));
    // A program of ours is in its folder itself.
    const modules = Object.values(catalog).flatMap((origin) =>
      origin.kind === 'go' && origin.build === build && !origin.module.startsWith('weir.dev/') ? [origin.module] : [],
    );
    for (const module of [...modules, ...extraPackages])
      assert.ok(read('tools.go').includes(`"${module}"`), `${module} is in ${folder}/tools.go`);
  }
  const source = readFileSync(new URL('../go/echo-pod/main.go', import.meta.url), 'utf8');
  assert.ok(source.includes(`const version = "${ours.version}"`));
});

test('only what the chosen test files declare is fetched, and nothing for files that cannot run anyway', async () => {
  await using folder = temporaryDirectory('needs');
  const file = (name: string, text: string): string => {
    writeFileSync(join(folder.path, name), text);
    return join(folder.path, name);
  };
  const plain = file('plain.test.ts', `test('adds', () => {});`);
  // put together here, since this file is one of those whose text is read
  const store = file('store.test.ts', `describe('store', ${'requireProgram'}('redis', 'wrk'), () => {});`);
  const whole = file('whole.test.ts', `const here = ${'insideNamespace'}({}); ${'requireProgram'}('etcd');`);
  const nodes = file('nodes.test.ts', `const here = ${'insideSandbox'}(); ${'requireProgram'}('runc');`);
  assert.deepEqual(requirementsOf(plain), { programs: [], isolation: 'none' });
  assert.deepEqual(requirementsOf(store), { programs: ['redis-server', 'wrk'], isolation: 'none' });
  assert.deepEqual(requirementsOf(whole), { programs: ['etcd', 'ip'], isolation: 'namespace' });
  assert.deepEqual(requirementsOf(nodes), { programs: ['runc'], isolation: 'sandbox' });
  const needs = [plain, store, whole, nodes].map(requirementsOf);
  assert.deepEqual(programsToProvide(needs, new Set()), ['redis-server', 'etcd', 'wrk', 'ip', 'runc']);
  assert.deepEqual(programsToProvide(needs, new Set(['sandbox'])), ['redis-server', 'etcd', 'wrk', 'ip']);
  assert.deepEqual(programsToProvide(needs, new Set(['namespace', 'sandbox'])), ['redis-server', 'wrk']);
});

type ProvideResult = {
  program: Record<string, string> & { path: string; skip: string; reason: string };
  progress: string;
};

function provide(name: string, env: NodeJS.ProcessEnv): Promise<ProvideResult> {
  return evaluate(`(await providePrograms(['${name}']))[0]`, env);
}

/** In a process of its own, with an environment of its own. */
async function evaluate(expression: string, env: NodeJS.ProcessEnv): Promise<ProvideResult> {
  const script = `
    import { findProgram, providePrograms, requireProgram } from '${index}';
    console.log(JSON.stringify(${expression}));`;
  const child = await spawnProcess({
    command: process.execPath,
    args: ['--input-type=module', '-e', script],
    env: { ...process.env, WEIR_PROGRAMS: '', WEIR_REQUIRE: '', ...env },
    mayExit: true,
  });
  const { code } = await child.exited;
  if (code !== 0) throw new Error(child.output());
  return { program: JSON.parse(child.stdout()), progress: child.output() };
}

/** A PATH with what apt and dpkg need, and nothing that the machine may happen to have beside them. */
function pathWithout(program: string, folder: string): string {
  const path = join(folder, `without-${program}`);
  mkdirSync(path, { recursive: true });
  for (const tool of ['apt-get', 'dpkg', 'dpkg-deb', 'dpkg-split', 'tar', 'rm', 'flock', 'sh', 'cat']) {
    if (existsSync(join('/usr/bin', tool))) symlinkSync(join('/usr/bin', tool), join(path, tool));
    else if (existsSync(join('/bin', tool))) symlinkSync(join('/bin', tool), join(path, tool));
  }
  return path;
}

function hasCommand(name: string): boolean {
  return spawnSync(name, ['--version']).error === undefined;
}
