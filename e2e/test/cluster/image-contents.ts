import assert from 'node:assert/strict';
import { execFileSync, spawnSync } from 'node:child_process';
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { before, describe, test } from 'node:test';
import { fileURLToPath } from 'node:url';
import {
  type ImageFile,
  listImageFiles,
  npmPackageFolders,
  type UnpackedImage,
  type UnpackedImages,
} from '../../src/images/unpacked-image.ts';

const root = fileURLToPath(new URL('../../../', import.meta.url));
const [, version] = /^appVersion: *["']?([^"'\s]+)/m.exec(readFileSync(`${root}charts/weir/Chart.yaml`, 'utf8')) ?? [];

/**
 * The maximum size of an image, compressed and unpacked. The limits are far above the real sizes, and detect development dependencies in an
 * image.
 */
const MAX_IMAGE_BYTES = { packed: 80_000_000, unpacked: 250_000_000 };

const expected = {
  proxy: {
    entrypoint: ['/usr/local/bin/node', '/weir/packages/proxy/dist/src/main.js'],
    command: undefined,
    packages: ['model', 'proxy', 'runtime', 'store'],
    programs: ['usr/local/bin/node'],
  },
  controller: {
    entrypoint: ['/usr/local/bin/node'],
    command: ['/weir/packages/controller/dist/src/main.js'],
    packages: ['cli', 'console', 'controller', 'model', 'proxy', 'runtime', 'store'],
    programs: ['usr/local/bin/node', 'usr/local/bin/weir', 'weir/packages/cli/bin/weir.js'],
  },
} as const;

export function imageContents(images: () => UnpackedImages): void {
  for (const kind of ['proxy', 'controller'] as const) {
    describe(`the ${kind} image`, () => {
      const wanted = expected[kind];
      let image: UnpackedImage;
      let files: readonly ImageFile[];
      before(() => {
        image = images()[kind];
        files = listImageFiles(image.rootfs);
      });

      test('has the name, labels and entrypoint that the chart expects', () => {
        assert.equal(image.name, `ghcr.io/weir-dev/weir-${kind}:${version}`);
        assert.equal(image.config.User, '65532:65532');
        assert.equal(image.config.WorkingDir, '/weir');
        assert.deepEqual(image.config.Entrypoint, wanted.entrypoint);
        assert.deepEqual(image.config.Cmd ?? undefined, wanted.command);
        const label = (name: string): string => image.config.Labels?.[`org.opencontainers.image.${name}`] ?? '';
        assert.equal(label('title'), `weir-${kind}`);
        assert.equal(label('licenses'), 'Apache-2.0');
        assert.equal(label('version'), version);
        assert.match(label('revision'), /^[0-9a-f]{16}$/);
        assert.equal(label('created'), '1970-01-01T00:00:00Z');
        assert.match(label('description'), /LoadBalancer Services for every tenant/);
      });

      test('contains no program but Node: no shell and no package manager', () => {
        const programs = files.filter(
          ({ kind, mode, path }) => kind === 'file' && (mode & 0o111) !== 0 && !/\.so\b/.test(path),
        );
        assert.deepEqual(programs.map(({ path }) => path).sort(), wanted.programs);
        assert.deepEqual(
          files.filter(({ path }) => /(^|\/)(npm|npx|yarn|corepack|sh|bash|dash|busybox|env)$/.test(path)),
          [],
        );
      });

      test('contains only files of root that no other user may write and without setuid', () => {
        const wrong = files.filter(
          ({ kind, mode, owner }) => owner !== '0:0' || kind === 'other' || (kind !== 'link' && (mode & 0o6022) !== 0),
        );
        assert.deepEqual(wrong, []);
      });

      test('contains only compiled code and runtime dependencies', () => {
        assert.deepEqual(readdirSync(join(image.rootfs, 'weir/packages')).sort(), wanted.packages);
        assert.deepEqual(
          files.filter(({ path }) => /\.(ts|cts|mts|tsx|map)$/.test(path)).map(({ path }) => path),
          [],
        );
        const lock = JSON.parse(readFileSync(`${root}package-lock.json`, 'utf8')) as {
          packages: Record<string, { dev?: boolean; devOptional?: boolean }>;
        };
        const folders = npmPackageFolders(files).map((path) => path.replace(/^weir\//, ''));
        assert.ok(folders.length > 20, `only ${folders.length} packages were found`);
        const forDevelopment = folders.filter((path) => lock.packages[path] === undefined || lock.packages[path].dev);
        assert.deepEqual(forDevelopment, []);
      });

      test('contains a bill of materials with all npm packages, Debian packages and Node', () => {
        const bill = JSON.parse(readFileSync(join(image.rootfs, 'weir/sbom.cdx.json'), 'utf8')) as {
          components: { name: string; version: string }[];
        };
        const listed = bill.components.map(({ name, version }) => `${name} ${version}`).sort();
        const described = [...npmPackageFolders(files), ...wanted.packages.map((name) => `weir/packages/${name}`)].map(
          (path) => {
            const { name, version } = JSON.parse(readFileSync(join(image.rootfs, path, 'package.json'), 'utf8'));
            return `${name} ${version}`;
          },
        );
        const debian = readdirSync(join(image.rootfs, 'var/lib/dpkg/status.d')).map((name) => {
          const text = readFileSync(join(image.rootfs, 'var/lib/dpkg/status.d', name), 'utf8');
          return `${name} ${/^Version: (.*)$/m.exec(text)?.[1]}`;
        });
        const node = `node ${process.versions.node}`;
        assert.deepEqual(listed, [...new Set([...described, ...debian, node])].sort());
      });

      test('contains the licenses of Weir and of all Debian packages', () => {
        assert.ok(existsSync(join(image.rootfs, 'weir/LICENSE')));
        const licensed = readdirSync(join(image.rootfs, 'usr/share/doc')).sort();
        assert.deepEqual(licensed, readdirSync(join(image.rootfs, 'var/lib/dpkg/status.d')).sort());
      });

      test('contains no data of the build host', () => {
        const names = files.filter(({ path }) =>
          /(^|\/)(\.npmrc|npmrc|\.env|\.git|resolv\.conf|.*\.(crt|pem|key))$/.test(path),
        );
        assert.deepEqual(
          names.map(({ path }) => path),
          [],
        );
        for (const word of wordsOfBuildHost()) {
          assert.ok(!image.metadataText.includes(word), `${word} is in the metadata of the image`);
          const found = spawnSync('grep', ['-rIlF', '--', word, image.rootfs], { encoding: 'utf8' });
          assert.equal(found.stdout, '');
        }
      });

      test('is small', (t) => {
        const { packed, unpacked } = image.size;
        t.diagnostic(`${(packed / 1e6).toFixed(0)} MB to pull, ${(unpacked / 1e6).toFixed(0)} MB on a disk`);
        assert.ok(packed < MAX_IMAGE_BYTES.packed, `${packed} bytes to pull`);
        assert.ok(unpacked < MAX_IMAGE_BYTES.unpacked, `${unpacked} bytes on a disk`);
      });
    });
  }

  test('only the Node of the proxy image has a file capability', () => {
    const { proxy, controller } = images();
    assert.deepEqual([proxy.filesWithCapabilities, controller.filesWithCapabilities], [['usr/local/bin/node'], []]);
  });
}

/** Returns texts that must not be in an image: the path of the checkout, the host of a private npm registry, and HTTP proxies. */
function wordsOfBuildHost(): string[] {
  const registry = execFileSync('npm', ['config', 'get', 'registry'], { cwd: '/', encoding: 'utf8' }).trim();
  const { host } = new URL(registry);
  const proxies = ['http_proxy', 'https_proxy', 'HTTP_PROXY', 'HTTPS_PROXY'].flatMap((name) => process.env[name] || []);
  return [root, host, 'certificates-outside', ...proxies].filter((word) => word !== 'registry.npmjs.org');
}
