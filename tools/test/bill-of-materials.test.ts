import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { temporaryDirectory } from '@weir/testkit';
import { type BillOfMaterials, billOfMaterials, type ImageContents } from '../src/images/bill-of-materials.ts';

const EMPTY: ImageContents = { npm: [], debian: [], release: '12', node: { node: '26.1.0' } };

function componentsOf(contents: Partial<ImageContents>): BillOfMaterials['components'] {
  return billOfMaterials('image', { ...EMPTY, ...contents }).components;
}

test('a package has its package URL and its license', () => {
  const npm = [{ name: '@scope/one', version: '1.2.3', license: '(MIT OR CC0-1.0)' }];
  const debian = [{ name: 'libc6', version: '2.36-9+deb12u10', architecture: 'amd64' }];
  const [debianComponent, npmComponent] = componentsOf({ npm, debian }).filter(({ name }) => name !== 'node');
  assert.equal(debianComponent?.purl, 'pkg:deb/debian/libc6@2.36-9%2Bdeb12u10?arch=amd64&distro=debian-12');
  assert.equal(npmComponent?.purl, 'pkg:npm/%40scope/one@1.2.3');
  assert.deepEqual(npmComponent?.licenses, [{ expression: '(MIT OR CC0-1.0)' }]);
});

test('packages of Weir have no package URL', () => {
  const npm = [{ name: '@weir/proxy', version: '0.0.0', license: 'Apache-2.0' }];
  const component = componentsOf({ npm }).find(({ name }) => name === '@weir/proxy');
  assert.equal(component?.purl, undefined);
  assert.deepEqual(component?.licenses, [{ license: { id: 'Apache-2.0' } }]);
});

test('Node has the libraries compiled into it as components', () => {
  const [node] = componentsOf({ node: { node: '26.1.0', openssl: '3.5.1', modules: '147' } });
  assert.equal(node?.cpe, 'cpe:2.3:a:nodejs:node.js:26.1.0:*:*:*:*:*:*:*');
  assert.deepEqual(node?.components, [{ type: 'library', name: 'openssl', version: '3.5.1' }]);
});

test('duplicate packages are listed once, in an order independent of the input', () => {
  const [a, b] = [
    { name: 'a', version: '1.0.0' },
    { name: 'b', version: '2.0.0' },
  ] as const;
  assert.deepEqual(componentsOf({ npm: [a, b] }), componentsOf({ npm: [b, a, b] }));
});

test('the script lists nested npm packages, packages of Weir and Debian packages', async () => {
  await using root = temporaryDirectory('image');
  const write = (path: string, text: string): void => {
    mkdirSync(dirname(join(root.path, path)), { recursive: true });
    writeFileSync(join(root.path, path), text);
  };
  const npmPackage = (path: string, name: string): void =>
    write(`weir/${path}/package.json`, JSON.stringify({ name, version: '1.0.0', license: { type: 'MIT' } }));
  npmPackage('node_modules/outer', 'outer');
  npmPackage('node_modules/outer/node_modules/@scope/inner', '@scope/inner');
  npmPackage('packages/proxy', '@weir/proxy');
  write('etc/os-release', 'ID=debian\nVERSION_ID="12"\n');
  write('var/lib/dpkg/status.d/libc6', 'Package: libc6\nArchitecture: arm64\nVersion: 2.36-9\n');
  const script = fileURLToPath(new URL('../src/images/write-bill-of-materials.ts', import.meta.url));
  execFileSync(process.execPath, [script, 'weir-proxy', root.path, join(root.path, 'weir')]);
  const bill = JSON.parse(readFileSync(join(root.path, 'weir/sbom.cdx.json'), 'utf8')) as BillOfMaterials;
  assert.equal(bill.metadata.component.name, 'weir-proxy');
  assert.deepEqual(bill.components.map(({ name }) => name).sort(), [
    '@scope/inner',
    '@weir/proxy',
    'libc6',
    'node',
    'outer',
  ]);
});
