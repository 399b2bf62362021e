import { renameSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { type Certificate, temporaryDirectory } from '@weir/testkit';

/** A file as WEIR_REDIS_CA names it. */
export interface CaFile {
  readonly path: string;
  /** Replaces it in one step, as kubelet does. */
  replace(...authorities: readonly Certificate[]): void;
  write(text: string): void;
  remove(): void;
  close(): Promise<void>;
}

export function createCaFile(...authorities: readonly Certificate[]): CaFile {
  const directory = temporaryDirectory('redis-ca');
  const path = join(directory.path, 'ca.crt');
  const write = (text: string): void => {
    writeFileSync(`${path}.new`, text);
    renameSync(`${path}.new`, path);
  };
  const replace = (...those: readonly Certificate[]): void =>
    write(those.map(({ certificate }) => certificate).join(''));
  replace(...authorities);
  return { path, replace, write, remove: () => rmSync(path), close: () => directory.close() };
}
