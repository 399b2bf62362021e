// Tests changes to watched directories in the ways in which editors, tools and mounts change files.
import assert from 'node:assert/strict';
import { mkdirSync, mkdtempSync, renameSync, rmSync, symlinkSync, unlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { beforeEach, describe, type TestContext, test } from 'node:test';
import {
  createManifestDirectory,
  type ManifestDirectory,
  portByService,
  service,
  waitUntil,
} from '../../fixtures/manifest-directory.ts';

let manifests: ManifestDirectory;
let directory: string;

beforeEach((context) => {
  manifests = createManifestDirectory(context as TestContext);
  directory = manifests.path;
});

describe('a watched directory', { timeout: 20_000 }, () => {
  test('shows an edit within 100 ms, however the editor writes', async () => {
    manifests.write('a.yaml', service('web', 80));
    const source = await manifests.open();
    const edits: Record<string, (text: string) => void> = {
      'in place': (text) => manifests.write('a.yaml', text),
      'written as a new file and renamed': (text) => {
        manifests.write('.a.yaml.swp', text);
        renameSync(join(directory, '.a.yaml.swp'), join(directory, 'a.yaml'));
      },
      'old file moved away, new file written': (text) => {
        renameSync(join(directory, 'a.yaml'), join(directory, 'a.yaml~'));
        manifests.write('a.yaml', text);
      },
    };
    let port = 80;
    for (const [way, edit] of Object.entries(edits)) {
      // The fastest of five edits counts, because the machine may be busy.
      const durations: number[] = [];
      for (let round = 0; round < 5; round += 1) {
        port += 1;
        const startedAt = performance.now();
        edit(service('web', port));
        await waitUntil(source, () => portByService(source)['shop/web'] === port);
        durations.push(performance.now() - startedAt);
      }
      assert.ok(Math.min(...durations) < 100, `${way} took ${durations.join(', ')} ms`);
    }
  });

  test('notices two writes of the same length in quick succession', async () => {
    manifests.write('a.yaml', service('web', 80));
    const source = await manifests.open();
    for (let port = 81; port < 90; port += 1) {
      manifests.write('a.yaml', service('web', port));
      await waitUntil(source, () => portByService(source)['shop/web'] === port);
    }
  });

  test('watches a file given by name, and a file that replaces it', async () => {
    manifests.write('only.conf', service('web', 80));
    manifests.write('other.yaml', service('api', 80));
    const source = await manifests.open({ paths: [join(directory, 'only.conf')] });
    assert.deepEqual(portByService(source), { 'shop/web': 80 });
    manifests.write('new', service('web', 81));
    renameSync(join(directory, 'new'), join(directory, 'only.conf'));
    await waitUntil(source, () => portByService(source)['shop/web'] === 81);
  });

  test('follows a mounted ConfigMap when its version link is swapped', async () => {
    for (const version of ['..1', '..2']) mkdirSync(join(directory, version));
    manifests.write('..1/a.yaml', service('web', 80));
    manifests.write('..2/a.yaml', service('web', 81));
    symlinkSync('..1', join(directory, '..data'));
    symlinkSync('..data/a.yaml', join(directory, 'a.yaml'));
    const source = await manifests.open();
    assert.deepEqual(portByService(source), { 'shop/web': 80 });
    symlinkSync('..2', join(directory, '..tmp'));
    renameSync(join(directory, '..tmp'), join(directory, '..data'));
    await waitUntil(source, () => portByService(source)['shop/web'] === 81);
  });

  test('reads new directories and forgets deleted files', async () => {
    const source = await manifests.open();
    mkdirSync(join(directory, 'team'));
    manifests.write('team/a.yaml', service('web', 80));
    await waitUntil(source, () => portByService(source)['shop/web'] === 80);
    manifests.write('team/a.yaml', service('web', 81));
    await waitUntil(source, () => portByService(source)['shop/web'] === 81);
    rmSync(join(directory, 'team'), { recursive: true });
    await waitUntil(source, () => source.snapshot().services.length === 0);
  });

  test('keeps the last valid objects while a file is broken, and reads the repaired file', async () => {
    manifests.write('a.yaml', `${service('web', 80)}---\n${service('api', 81)}`);
    const source = await manifests.open();
    manifests.write('a.yaml', `${service('web', 90)}---\n${service('api', 0)}`);
    await waitUntil(source, () => portByService(source)['shop/web'] === 90);
    assert.deepEqual(portByService(source), { 'shop/api': 81, 'shop/web': 90 });
    assert.equal(manifests.problems(source).length, 1);
    manifests.write('a.yaml', `${service('web', 91)}---\n{{ broken`);
    await waitUntil(source, () => portByService(source)['shop/web'] === 91);
    assert.deepEqual(
      portByService(source),
      { 'shop/api': 81, 'shop/web': 91 },
      'the broken document may be any missing object',
    );
    manifests.write('a.yaml', service('web', 92));
    await waitUntil(source, () => portByService(source)['shop/web'] === 92);
    assert.deepEqual(portByService(source), { 'shop/web': 92 });
    assert.deepEqual(manifests.problems(source), []);
  });

  test('keeps the objects of a file that an editor has truncated but not yet written', async () => {
    manifests.write('a.yaml', service('web', 80));
    const source = await manifests.open();
    const seen: (number | undefined)[] = [];
    source.onChange(() => seen.push(portByService(source)['shop/web']));
    manifests.write('a.yaml', '');
    await source.scan();
    manifests.write('a.yaml', service('web', 81));
    await waitUntil(source, () => portByService(source)['shop/web'] === 81);
    assert.ok(!seen.includes(undefined), `the Service was missing in between: ${seen.join(', ')}`);
    manifests.write('a.yaml', '');
    await waitUntil(source, () => source.snapshot().services.length === 0);
  });

  test('calls no listener for a change that leaves the objects equal', async () => {
    manifests.write('a.yaml', service('web', 80));
    const source = await manifests.open();
    const before = source.snapshot();
    let calls = 0;
    source.onChange(() => {
      calls += 1;
    });
    manifests.write('a.yaml', `# only a comment\n${service('web', 80)}`);
    await source.scan();
    assert.equal(calls, 0);
    assert.equal(source.snapshot(), before);
  });

  test('reports a directory that disappears, and keeps its objects', async () => {
    const inner = mkdtempSync(join(directory, 'mount-'));
    writeFileSync(join(inner, 'a.yaml'), service('web', 80));
    const source = await manifests.open({ paths: [inner] });
    renameSync(inner, join(directory, 'away'));
    await waitUntil(source, () => manifests.problems(source).length > 0);
    assert.match(
      manifests.problems(source)[0] ?? '',
      /^UnreadableFile mount-\S+: does not exist; the objects last read from this path stay in use/,
    );
    assert.deepEqual(portByService(source), { 'shop/web': 80 });
    renameSync(join(directory, 'away'), inner);
    await waitUntil(source, () => manifests.problems(source).length === 0);
    writeFileSync(join(inner, 'a.yaml'), service('web', 81));
    await waitUntil(source, () => portByService(source)['shop/web'] === 81);
  });

  test('reports a folder that becomes a circular link and keeps its objects', async () => {
    const folder = join(directory, 'folder');
    mkdirSync(folder);
    manifests.write('folder/web.yaml', service('web', 80));
    const source = await manifests.open({ paths: [join(folder, 'web.yaml')] });
    rmSync(folder, { recursive: true });
    symlinkSync(folder, folder);
    await source.scan();
    await waitUntil(source, () => manifests.problems(source).length > 0);
    assert.deepEqual(portByService(source), { 'shop/web': 80 });
    unlinkSync(folder);
    mkdirSync(folder);
    manifests.write('folder/web.yaml', service('web', 81));
    await waitUntil(source, () => portByService(source)['shop/web'] === 81);
  });
});
