import { randomBytes } from 'node:crypto';
import { mkdir, open, readFile, rename, rm, stat } from 'node:fs/promises';
import { dirname, resolve } from 'node:path';
import { fileError } from './errors.ts';

/** Text in pieces is asked for as it is written, and others have their turn in between. */
type FileContent = string | Uint8Array | Iterable<string>;

/**
 * Replaces the file as a whole: after a crash or power cut at any moment there is the old content or the new one. Mode 0600. Throws
 * `FILE_FAILED`; the old content is then still there.
 */
export async function writeFileAtomic(path: string, content: FileContent): Promise<void> {
  // Random, not the pid: in containers two lives on one node that share the directory both have pid 1.
  const temporary = `${path}.${randomBytes(6).toString('hex')}.tmp`;
  try {
    await writeAndSync(temporary, content);
    await rename(temporary, path);
    await syncDirectory(dirname(path));
  } catch (error) {
    await rm(temporary, { force: true }).catch(() => {}); // The reason is the first error.
    throw fileError(error, 'write', path);
  }
}

/** The text of the file, or undefined when there is none; throws `FILE_FAILED` when there is one that cannot be read. */
export async function readFileIfPresent(path: string): Promise<string | undefined> {
  try {
    return await readFile(path, 'utf8');
  } catch (error) {
    if (isNotFound(error)) return undefined;
    throw fileError(error, 'read', path);
  }
}

/** Makes a state directory (mode 0700) where there is none yet. Throws `FILE_FAILED`. */
export async function ensureDirectory(path: string): Promise<void> {
  try {
    await createWithParents(resolve(path));
  } catch (error) {
    throw fileError(error, 'create', path);
  }
}

/** Not `recursive`: below /proc, where mkdir says ENOENT under a directory that is there, that one tries for ever. */
async function createWithParents(path: string): Promise<void> {
  try {
    await createUnlessPresent(path);
  } catch (error) {
    const parent = dirname(path);
    if (!isNotFound(error) || parent === path) throw error;
    await createWithParents(parent);
    await createUnlessPresent(path);
  }
}

async function createUnlessPresent(path: string): Promise<void> {
  try {
    await mkdir(path, { mode: 0o700 });
  } catch (error) {
    const isThere = await stat(path).then(
      (found) => found.isDirectory(),
      () => false,
    );
    if (!isThere) throw error;
  }
}

function isNotFound(error: unknown): boolean {
  return error instanceof Error && 'code' in error && error.code === 'ENOENT';
}

async function writeAndSync(path: string, content: FileContent): Promise<void> {
  // wx: never through a link that somebody else has put there.
  const file = await open(path, 'wx', 0o600);
  try {
    await file.writeFile(content);
    await file.sync();
  } finally {
    await file.close();
  }
}

/** Without it the new name may be lost in a power cut although the content is not. Some network file systems cannot do it. */
async function syncDirectory(path: string): Promise<void> {
  const directory = await open(path, 'r');
  try {
    await directory.sync();
  } catch (error) {
    if (!(error instanceof Error && 'code' in error && (error.code === 'EINVAL' || error.code === 'ENOTSUP')))
      throw error;
  } finally {
    await directory.close();
  }
}
