import { mkdirSync, renameSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Certificate, TemporaryDirectory } from '@weir/testkit';

/** As the kubelet mounts a Secret: the files are links into a directory that is itself a link, and only that one is replaced. */
export function mountCertificate(directory: TemporaryDirectory, { chain, key }: Certificate, version: string): string {
  const data = join(directory.path, version);
  mkdirSync(data);
  writeFileSync(join(data, 'tls.crt'), chain);
  writeFileSync(join(data, 'tls.key'), key);
  symlinkSync(version, join(directory.path, '..next'));
  renameSync(join(directory.path, '..next'), join(directory.path, '..data'));
  return join(directory.path, '..data');
}
