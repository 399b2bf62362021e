import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { type FileContents, parseContents } from '../../../src/watch/directory/file-contents.ts';
import { manifestParsersFor } from '../../../src/watch/directory/manifest-kinds.ts';
import { MergedFiles } from '../../../src/watch/directory/merged-files.ts';

const parsers = manifestParsersFor(undefined);

/** Returns a file with one Service per name; the number of its port is `port`. */
function file(path: string, names: readonly string[], port = 80): FileContents {
  const items = names.map((name) => ({
    apiVersion: 'v1',
    kind: 'Service',
    metadata: { name, namespace: 'shop' },
    spec: { ports: [{ port }] },
  }));
  return parseContents({ path, text: JSON.stringify({ apiVersion: 'v1', kind: 'List', items }) }, { parsers });
}

function filesOf(...files: readonly (readonly [path: string, contents: FileContents])[]): Map<string, FileContents> {
  return new Map(files);
}

describe('merged files', () => {
  test('report only the objects of a changed file', () => {
    const merged = new MergedFiles();
    const unchanged = file('b.yaml', ['api']);
    assert.equal(merged.update(filesOf(['a.yaml', file('a.yaml', ['web'])], ['b.yaml', unchanged])).length, 2);
    assert.deepEqual(
      merged.update(filesOf(['b.yaml', unchanged])).map(({ before, after }) => [before?.path, after]),
      [['a.yaml', undefined]],
    );
    assert.deepEqual(merged.update(filesOf(['b.yaml', unchanged])), []);
  });

  test('keep the object of the file that provided it before, and take a copy once that file is gone', () => {
    const merged = new MergedFiles();
    const original = file('b.yaml', ['web']);
    merged.update(filesOf(['b.yaml', original]));
    const copy = file('a.yaml', ['web'], 81);
    assert.deepEqual(merged.update(filesOf(['a.yaml', copy], ['b.yaml', original])), []);
    assert.deepEqual(
      merged.problems().map(({ code, message }) => [code, message.slice(0, 52)]),
      [['DuplicateObject', 'is defined in b.yaml:1 and in a.yaml:1; the first de']],
    );
    const [change] = merged.update(filesOf(['a.yaml', copy]));
    assert.deepEqual([change?.before?.path, change?.after?.path], ['b.yaml', 'a.yaml']);
    assert.deepEqual(merged.problems(), []);
  });

  test('take the first file by path if no file provided the object before', () => {
    const merged = new MergedFiles();
    merged.update(filesOf(['b.yaml', file('b.yaml', ['web'])], ['a.yaml', file('a.yaml', ['web'])]));
    assert.equal(merged.objects.get('Service shop/web')?.path, 'a.yaml');
  });
});
