import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { mkdirSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { temporaryDirectory } from '@weir/testkit';
import { ociArchive, type TarEntry, tarArchive } from '../src/cluster/oci-archive.ts';

const FILES: readonly TarEntry[] = [
  { kind: 'folder', path: 'tmp', mode: 0o1777 },
  { kind: 'file', path: 'program', mode: 0o755, data: Buffer.alloc(1000, 'x') },
  { kind: 'file', path: 'empty', mode: 0o644, data: Buffer.alloc(0) },
];

test('tar(1) unpacks an archive with contents and modes', async () => {
  await using folder = temporaryDirectory('tar');
  unpack(tarArchive(FILES), folder.path);
  assert.equal(readFileSync(join(folder.path, 'program'), 'utf8'), 'x'.repeat(1000));
  assert.equal(readFileSync(join(folder.path, 'empty'), 'utf8'), '');
  assert.equal(statSync(join(folder.path, 'program')).mode & 0o777, 0o755);
  assert.ok(statSync(join(folder.path, 'tmp')).isDirectory());
});

test('images of one archive share a layer, and every digest matches its blob', async () => {
  await using folder = temporaryDirectory('oci');
  const images = ['one', 'two'].map((name) => ({ name: `weir.test/${name}:1`, entrypoint: [`/${name}`] }));
  unpack(ociArchive(images, FILES), folder.path);
  const blob = (digest: string): Buffer => {
    const data = readFileSync(join(folder.path, 'blobs', ...digest.split(':')));
    assert.equal(digest, `sha256:${createHash('sha256').update(data).digest('hex')}`);
    return data;
  };
  const index = JSON.parse(readFileSync(join(folder.path, 'index.json'), 'utf8')) as { manifests: Descriptor[] };
  const manifests = index.manifests.map((each) => JSON.parse(String(blob(each.digest))) as Manifest);
  assert.deepEqual(
    manifests.map(({ config }) => JSON.parse(String(blob(config.digest))).config.Entrypoint),
    [['/one'], ['/two']],
  );
  assert.deepEqual(manifests[0]?.layers, manifests[1]?.layers);
  assert.deepEqual(blob(manifests[0]?.layers[0]?.digest ?? ''), tarArchive(FILES));
});

type Descriptor = { digest: string };
type Manifest = { config: Descriptor; layers: Descriptor[] };

function unpack(archive: Buffer, into: string): void {
  mkdirSync(into, { recursive: true });
  const file = join(into, 'archive.tar');
  writeFileSync(file, archive);
  execFileSync('tar', ['-xpf', file, '-C', into]);
}
