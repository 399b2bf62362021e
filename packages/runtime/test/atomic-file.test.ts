import assert from 'node:assert/strict';
import { chmod, mkdir, mkdtemp, readdir, rm, stat, symlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import { ensureDirectory, readFileIfPresent, writeFileAtomic } from '../src/index.ts';

async function directory(t: TestContext): Promise<string> {
  const path = await mkdtemp(join(tmpdir(), 'weir-runtime-'));
  t.after(() => rm(path, { recursive: true, force: true }));
  return path;
}

test('writes and replaces a file with mode 0600 and leaves no temporary file', async (t) => {
  const dir = await directory(t);
  const path = join(dir, 'table.json');
  await writeFileAtomic(path, 'one');
  await chmod(path, 0o644);
  await writeFileAtomic(path, Buffer.from('two'));
  assert.equal(await readFileIfPresent(path), 'two');
  assert.equal((await stat(path)).mode & 0o777, 0o600);
  assert.deepEqual(await readdir(dir), ['table.json']);
});

test('keeps one complete content after concurrent writes', async (t) => {
  const path = join(await directory(t), 'journal');
  const contents = ['a', 'b', 'c', 'd'].map((letter) => letter.repeat(100_000));
  await Promise.all(contents.map((content) => writeFileAtomic(path, content)));
  assert.ok(contents.includes((await readFileIfPresent(path)) ?? ''));
});

test('keeps the old content after a failed write, removes the temporary file and names the fix', async (t) => {
  const dir = await directory(t);
  await mkdir(join(dir, 'taken'));
  const path = join(dir, 'taken');
  await assert.rejects(writeFileAtomic(path, 'x'), {
    code: 'FILE_FAILED',
    message: `cannot write ${path}: the path is a directory; name a file`,
  });
  assert.deepEqual(await readdir(dir), ['taken']);
  const nowhere = join(dir, 'missing', 'file');
  const message = `cannot write ${nowhere}: its directory does not exist; create it`;
  await assert.rejects(writeFileAtomic(nowhere, 'x'), { code: 'FILE_FAILED', message });
});

test('replaces a symbolic link instead of following it', async (t) => {
  const dir = await directory(t);
  const target = join(dir, 'target');
  await writeFile(target, 'precious');
  await symlink(target, join(dir, 'state'));
  await writeFileAtomic(join(dir, 'state'), 'new');
  assert.equal(await readFileIfPresent(target), 'precious');
  assert.equal(await readFileIfPresent(join(dir, 'state')), 'new');
});

test('returns undefined for a missing file and throws for an unreadable file', async (t) => {
  const dir = await directory(t);
  assert.equal(await readFileIfPresent(join(dir, 'none')), undefined);
  await assert.rejects(readFileIfPresent(dir), {
    code: 'FILE_FAILED',
    message: `cannot read ${dir}: the path is a directory; name a file`,
  });
});

test('creates a state directory with its parents and keeps an existing directory', async (t) => {
  const path = join(await directory(t), 'a', 'b');
  await ensureDirectory(path);
  await writeFile(join(path, 'kept'), '');
  await ensureDirectory(path);
  assert.deepEqual(await readdir(path), ['kept']);
  await assert.rejects(ensureDirectory(join(path, 'kept')), {
    message: /a file with this name already exists; remove the file/,
  });
});

test('throws where no directory can be created instead of retrying forever', { timeout: 5_000 }, async () => {
  // mkdir returns ENOENT below /proc although /proc exists; Node's recursive mkdir loops forever there and blocks SIGTERM.
  const path = process.platform === 'linux' ? '/proc/weir/state' : '/dev/null/weir/state';
  await assert.rejects(ensureDirectory(path), { code: 'FILE_FAILED' });
});
