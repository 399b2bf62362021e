import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { chmodSync, existsSync, mkdirSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, test } from 'node:test';
import { temporaryDirectory } from '@weir/testkit';
import { catalog, goBuilds } from '../src/programs/catalog.ts';
import { programsToProvide, requirementsOf } from '../src/test-runner/requirements.ts';
import { debianRepository } from './debian-repository.ts';
import { type Evaluation, evaluateInProcess } from './evaluate-in-process.ts';

const isDebian = hasCommand('apt-get') && hasCommand('dpkg-deb');

/** A package whose program reads a file in LD_LIBRARY_PATH, because the dynamic loader looks for shared objects there. */
const WRK_PACKAGE = {
  name: 'wrk',
  depends: 'libweirtest9',
  files: { 'usr/bin/wrk': '#!/bin/sh\nIFS=:; cd $LD_LIBRARY_PATH; echo "wrk 9.9 with $(cat libweirtest.so.9)"\n' },
};
const LIBRARY_PACKAGE = { name: 'libweirtest9', files: { 'usr/lib/weirtest/libweirtest.so.9': 'its library\n' } };

describe('a missing program', () => {
  test('is fetched once with its dependencies if two processes request it at the same time', {
    skip: isDebian ? false : 'needs apt-get and dpkg-deb',
  }, async () => {
    await using folder = temporaryDirectory('repository');
    const env = {
      PATH: pathWithout('wrk', folder.path),
      WEIR_CACHE: join(folder.path, 'cache'),
      ...debianRepository(join(folder.path, 'debian'), [WRK_PACKAGE, LIBRARY_PACKAGE]),
    };
    const results = await Promise.all([provide('wrk', env), provide('wrk', env)]);
    for (const { value: program } of results) {
      assert.deepEqual([program.kind, program.version], ['available', '9.9']);
      assert.ok(program.path.startsWith(env.WEIR_CACHE), `${program.path} is in the cache`);
      assert.equal(spawnSync(program.path, { encoding: 'utf8' }).stdout, 'wrk 9.9 with its library\n');
    }
    const fetches = results.filter(({ progress }) => /downloading 2 Debian packages/.test(progress));
    assert.equal(fetches.length, 1);
  });

  test('is started with the module of a second package', {
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
    const { value: program } = await provide('nginx-stream', env);
    assert.deepEqual([program.kind, program.version], ['available', '9.9']);
    const output = spawnSync(program.path, ['-v'], { encoding: 'utf8' }).stdout;
    const [, path = ''] = /^nginx\/9\.9 with load_module (\/.+\.so);$/m.exec(output) ?? [];
    assert.equal(readFileSync(path, 'utf8'), 'module\n');
  });

  test('finds its data files and programs in the unpacked packages', {
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
      { name: 'weirtest-fetch', files: { 'usr/bin/weirtest-fetch': '#!/bin/sh\necho "its fetcher"\n' } },
      { name: 'debian-archive-keyring', files: { 'usr/share/keyrings/debian-archive-keyring.gpg': 'keys' } },
    ];
    const env = {
      PATH: pathWithout('debootstrap', folder.path),
      WEIR_CACHE: join(folder.path, 'cache'),
      ...debianRepository(join(folder.path, 'debian'), packages),
    };
    const { value: program } = await provide('debootstrap', env);
    assert.equal(program.kind, 'available', program.reason);
    const output = spawnSync(program.path, { encoding: 'utf8', env: { PATH: env.PATH } }).stdout;
    assert.equal(output, 'debootstrap 9.9 with its functions, its fetcher\n');
  });

  test('stays missing if no repository contains the package', {
    skip: isDebian ? false : 'needs apt-get',
  }, async () => {
    await using folder = temporaryDirectory('repository');
    const env = {
      PATH: pathWithout('wrk', folder.path),
      WEIR_CACHE: join(folder.path, 'cache'),
      ...debianRepository(join(folder.path, 'debian'), [LIBRARY_PACKAGE]),
    };
    const { value: program } = await provide('wrk', env);
    assert.equal(program.kind, 'missing');
    assert.match(program.reason, /Unable to locate package wrk/);
  });

  test('has a reason and a remedy if apt-get is not installed', async () => {
    await using cache = temporaryDirectory('cache');
    const { value: program } = await provide('wrk', { WEIR_CACHE: cache.path, PATH: cache.path });
    assert.deepEqual(program, {
      kind: 'missing',
      name: 'wrk',
      reason: 'apt-get is not on PATH',
      remedy: 'apt-get install wrk',
    });
  });

  test('is missing if the installed version is too old', async () => {
    await using folder = temporaryDirectory('old');
    const redis = join(folder.path, 'redis-server');
    writeFileSync(redis, '#!/bin/sh\necho "Redis server v=6.0.16"\n');
    chmodSync(redis, 0o755);
    const { value: program } = await evaluateInProcess<Result>(`findProgram('redis-server')`, {
      WEIR_CACHE: folder.path,
      PATH: folder.path,
    });
    assert.equal(program.kind, 'missing');
    assert.match(program.reason, /redis-server is 6\.0\.16, older than 7\.0/);
    assert.equal(program.remedy, 'apt-get install redis-server');
  });

  test('skips the tests that require it, or fails them with WEIR_REQUIRE=all', async () => {
    await using cache = temporaryDirectory('cache');
    const bare = { WEIR_CACHE: cache.path, PATH: cache.path };
    const { value: requirement } = await evaluateInProcess<Result>(`requireProgram('redis')`, bare);
    assert.match(requirement.skip, /^redis-server is missing \(.*\); to install: apt-get install redis-server$/);
    await assert.rejects(
      evaluateInProcess(`requireProgram('redis')`, { ...bare, WEIR_REQUIRE: 'all' }),
      /WEIR_REQUIRE=all, but redis-server/,
    );
  });
});

test('the Go modules pin the versions and packages of the catalog', () => {
  const { 'echo-pod': echoPod, 'grpc-peer': grpcPeer, ...others } = goBuilds;
  for (const [build, { folder, version, extraPackages = [] }] of Object.entries(others)) {
    const read = (file: string): string => readFileSync(new URL(`../go/${folder}/${file}`, import.meta.url), 'utf8');
    assert.match(read('go.mod'), new RegExp(`^(?:require |\\t)\\S+ v${version.replaceAll(/[.+]/g, '\\$&')}$`, 'm'));
    // Leaves out the programs with a module of weir.dev, because their main package is in the folder of go.mod.
    const modules = Object.values(catalog).flatMap((origin) =>
      origin.kind === 'go' && origin.build === build && !origin.module.startsWith('weir.dev/') ? [origin.module] : [],
    );
    for (const module of [...modules, ...extraPackages])
      assert.ok(read('tools.go').includes(`"${module}"`), `${module} is in ${folder}/tools.go`);
  }
  for (const { folder, version } of [echoPod, grpcPeer]) {
    const source = readFileSync(new URL(`../go/${folder}/main.go`, import.meta.url), 'utf8');
    assert.ok(source.includes(`const version = "${version}"`), `${folder} has the version of the catalog`);
  }
});

test('only programs declared by runnable test files are fetched', async () => {
  await using folder = temporaryDirectory('needs');
  const file = (name: string, text: string): string => {
    writeFileSync(join(folder.path, name), text);
    return join(folder.path, name);
  };
  const plain = file('plain.test.ts', `test('adds', () => {});`);
  // Interpolates the function's name, because `npm test` would otherwise find these calls in the text of this file.
  const store = file('store.test.ts', `describe('store', ${'requireProgram'}('redis', 'wrk'), () => {});`);
  const namespaced = file('namespaced.test.ts', `const here = ${'insideNamespace'}({}); ${'requireProgram'}('etcd');`);
  const nodes = file('nodes.test.ts', `const here = ${'insideSandbox'}(); ${'requireProgram'}('runc');`);
  assert.deepEqual(requirementsOf(plain), { programs: [], isolation: 'none' });
  assert.deepEqual(requirementsOf(store), { programs: ['redis-server', 'wrk'], isolation: 'none' });
  assert.deepEqual(requirementsOf(namespaced), { programs: ['etcd', 'ip'], isolation: 'namespace' });
  assert.deepEqual(requirementsOf(nodes), { programs: ['runc'], isolation: 'sandbox' });
  const needs = [plain, store, namespaced, nodes].map(requirementsOf);
  assert.deepEqual(programsToProvide(needs, new Set()), ['redis-server', 'etcd', 'wrk', 'ip', 'runc']);
  assert.deepEqual(programsToProvide(needs, new Set(['sandbox'])), ['redis-server', 'etcd', 'wrk', 'ip']);
  assert.deepEqual(programsToProvide(needs, new Set(['namespace', 'sandbox'])), ['redis-server', 'wrk']);
});

type Result = Record<string, string> & { path: string; skip: string; reason: string };

function provide(name: string, env: NodeJS.ProcessEnv): Promise<Evaluation<Result>> {
  return evaluateInProcess(`(await providePrograms(['${name}']))[0]`, env);
}

/** Returns a PATH that contains only the programs that apt and dpkg need. */
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
