import assert from 'node:assert/strict';
import { globSync, readFileSync } from 'node:fs';
import { basename, dirname, join } from 'node:path';
import { describe, test } from 'node:test';
import { fileURLToPath } from 'node:url';

const ALLOWED_LICENCES: ReadonlySet<string> = new Set([
  'MIT',
  'ISC',
  'BSD-2-Clause',
  'BSD-3-Clause',
  'Apache-2.0',
  '0BSD',
  'Python-2.0',
  'PSF-2.0',
  'Unlicense',
  'BlueOak-1.0.0',
  'CC0-1.0',
]);

/**
 * Reports whether an SPDX expression permits distribution: all licences of at least one alternative of `OR` are allowed. Does not support
 * `WITH` and nesting.
 */
export function isAllowedLicence(expression: string): boolean {
  const alternatives = expression.replace(/^\((.*)\)$/, '$1').split(' OR ');
  return alternatives.some((each) => each.split(' AND ').every((name) => ALLOWED_LICENCES.has(name)));
}

/** The allowed licences, in the order of docs/dependencies.md. */
export const allowedLicenceNames: readonly string[] = [...ALLOWED_LICENCES];

/** An entry of package-lock.json for a package below node_modules. */
export interface LockedPackage {
  readonly version: string;
  readonly license?: string;
  readonly integrity?: string;
  /** Whether only tests and development need the package. */
  readonly dev?: boolean;
}

const LOCK_FILE = new URL('../../package-lock.json', import.meta.url);

/** Returns the packages that npm installs from a registry, by path such as node_modules/pino. Leaves out the packages of the workspace. */
export function lockedPackages(): ReadonlyMap<string, LockedPackage> {
  const { packages } = JSON.parse(readFileSync(LOCK_FILE, 'utf8')) as {
    packages: Record<string, LockedPackage & { readonly link?: boolean }>;
  };
  return new Map(Object.entries(packages).filter(([place, { link }]) => place.includes('node_modules/') && !link));
}

const root = fileURLToPath(new URL('../../', import.meta.url));
const read = (path: string): string => readFileSync(join(root, path), 'utf8');
const locked = lockedPackages();

/**
 * Returns where each declared dependency is needed: in the folders that need the dependency at run time, otherwise in tests or development.
 */
function declared(): ReadonlyMap<string, string> {
  const places = new Map<string, Set<string>>();
  for (const path of globSync('{packages/*/,bench/,e2e/,tools/,}package.json', { cwd: root }).sort()) {
    const { dependencies = {}, devDependencies = {} } = JSON.parse(read(path));
    const folder = dirname(path);
    for (const [names, place] of [
      [dependencies, basename(folder)],
      [devDependencies, folder === '.' ? 'development' : 'tests'],
    ])
      for (const name of Object.keys(names)) if (!name.startsWith('@weir/')) placesOf(places, name).add(place);
  }
  return new Map(
    [...places].map(([name, all]) => {
      const running = [...all].filter((place) => place !== 'tests' && place !== 'development');
      return [name, (running.length > 0 ? running : [...all]).sort().join(', ')];
    }),
  );
}

function placesOf(places: Map<string, Set<string>>, name: string): Set<string> {
  const found = places.get(name) ?? new Set();
  places.set(name, found);
  return found;
}

describe('docs/dependencies.md', () => {
  const page = read('docs/dependencies.md');
  const rows = page
    .split('\n')
    .filter((line) => line.startsWith('| `'))
    .map((line) => line.split('|').map((cell) => cell.trim()));

  test('lists exactly the declared dependencies, with their users', () => {
    const listed = rows.map(([, name = '', where = '']) => [
      name.replaceAll('`', ''),
      where.split(', ').sort().join(', '),
    ]);
    const byName = ([a = '']: readonly string[], [b = '']: readonly string[]): number => (a < b ? -1 : 1);
    assert.deepEqual(listed.sort(byName), [...declared()].sort(byName));
  });

  test('has a reason, the rejected alternatives and the license of each dependency', () => {
    for (const [, name = '', , why, other, licence] of rows) {
      assert.ok(why && other, name);
      assert.equal(licence, locked.get(`node_modules/${name.replaceAll('`', '')}`)?.license, name);
    }
  });

  test('lists the allowed licenses', () => {
    const [, list = ''] = /transitive\s+dependencies: (.+?)\.\s+A\s+package/s.exec(page) ?? [];
    assert.deepEqual(list.split(/,\s+/), allowedLicenceNames);
  });
});

describe('dependencies in production', () => {
  test('have allowed licenses, including transitive dependencies', () => {
    const running = [...locked].filter(([, { dev = false }]) => !dev);
    assert.ok(running.length > 50, `only ${running.length} packages were found in the lock`);
    const refused = running.filter(([, { license = 'none' }]) => !isAllowedLicence(license));
    assert.deepEqual(
      refused.map(([place, { version, license }]) => `${place} ${version}: ${license}`),
      [],
    );
  });

  test('are pinned with a checksum, like development dependencies', () => {
    const unpinned = [...locked].filter(([, { integrity = '' }]) => !integrity.startsWith('sha512-'));
    assert.deepEqual(
      unpinned.map(([place]) => place),
      [],
    );
  });

  test('are refused with other licenses, alone or combined', () => {
    for (const fine of ['MIT', '(MIT OR GPL-3.0-only)', 'MIT AND ISC']) assert.ok(isAllowedLicence(fine), fine);
    for (const bad of ['GPL-3.0-only', 'MIT AND GPL-3.0-only', '(AGPL-3.0-only OR SSPL-1.0)', 'UNLICENSED', ''])
      assert.ok(!isAllowedLicence(bad), bad);
  });
});
