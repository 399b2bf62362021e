import { randomBytes } from 'node:crypto';
import { renameSync, rmSync, writeFileSync } from 'node:fs';
import { mkdir, open, readFile, rename, rm, stat } from 'node:fs/promises';
import { dirname, resolve } from 'node:path';
import { fileError } from './errors.ts';

/**
 * The text or bytes of a file. Chunks of an iterable are read one by one while the file is written, so that other work
 * can run between two chunks.
 */
type FileContent = string | Uint8Array | Iterable<string>;

/**
 * Replaces a file atomically, with mode 0600: after a crash or power cut the file has either the old or the new content. Throws
 * `FILE_FAILED` if a step fails. The file then has the old content, unless the failed step is the sync of the directory, the last step.
 */
export async function writeFileAtomic(path: string, content: FileContent): Promise<void> {
  const temporary = temporaryPathFor(path);
  try {
    await writeAndSync(temporary, content);
    await rename(temporary, path);
    await syncDirectory(dirname(path));
  } catch (error) {
    await rm(temporary, { force: true }).catch(() => {}); // Only `error` is reported.
    throw fileError(error, 'write', path);
  }
}

/**
 * Replaces a file at once, with mode 0600. The new content survives the death of this process, but perhaps not a power cut, because the
 * content is not synced. Blocks the thread for a fraction of a millisecond, so the content should be small. Throws `FILE_FAILED` on failure.
 */
export function writeFileUnsynced(path: string, content: string): void {
  const temporary = temporaryPathFor(path);
  try {
    writeFileSync(temporary, content, { flag: 'wx', mode: 0o600 });
    renameSync(temporary, path);
  } catch (error) {
    rmSync(temporary, { force: true });
    throw fileError(error, 'write', path);
  }
}

/** Returns the text of the file, or undefined if the file does not exist. Throws `FILE_FAILED` if the file cannot be read. */
export async function readFileIfPresent(path: string): Promise<string | undefined> {
  try {
    return await readFile(path, 'utf8');
  } catch (error) {
    if (isNotFound(error)) return undefined;
    throw fileError(error, 'read', path);
  }
}

/** Creates a state directory (mode 0700) and its parents unless they exist. Throws `FILE_FAILED` on failure. */
export async function ensureDirectory(path: string): Promise<void> {
  try {
    await createWithParents(resolve(path));
  } catch (error) {
    throw fileError(error, 'create', path);
  }
}

/**
 * Creates a directory and its missing parents. Node's `recursive` option is not used, because it loops forever below
 * /proc: mkdir returns ENOENT there although the parent exists.
 */
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
    const isDirectory = await stat(path).then(
      (found) => found.isDirectory(),
      () => false,
    );
    if (!isDirectory) throw error;
  }
}

/** The suffix is random and not the pid, because two containers that share the directory both run as pid 1. */
function temporaryPathFor(path: string): string {
  return `${path}.${randomBytes(6).toString('hex')}.tmp`;
}

function isNotFound(error: unknown): boolean {
  return error instanceof Error && 'code' in error && error.code === 'ENOENT';
}

async function writeAndSync(path: string, content: FileContent): Promise<void> {
  // The flag wx refuses a symbolic link that another user may have placed at this path.
  const file = await open(path, 'wx', 0o600);
  try {
    await file.writeFile(content);
    await file.sync();
  } finally {
    await file.close();
  }
}

/**
 * Syncs a directory, so that a rename in the directory survives a power cut. Ignores file systems that cannot sync a
 * directory, such as some network file systems.
 */
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
