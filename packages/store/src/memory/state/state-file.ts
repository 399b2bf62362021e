import { access, constants, open, readFile, rename } from 'node:fs/promises';
import { dirname } from 'node:path';
import { ensureDirectory, errorMessage, WeirError } from '@weir/runtime';
import { StoreError } from '../../error.ts';

/** One part of a store, as it lies in the state directory. */
export interface StateFormat<T> {
  /** Stands in the file, so that a file under another's name is noticed. */
  readonly kind: string;
  /** What begins anew when the file is moved away. */
  readonly lossDescription: string;
  encode(content: T): object;
  /** Undefined: it is not of this shape. */
  decode(value: Readonly<Record<string, unknown>>): T | undefined;
}

const STATE_FILE_VERSION = 1;

/** What is in the file; undefined when there is none. Throws DAMAGED rather than begin with less than there was. */
export async function readState<T>(path: string, format: StateFormat<T>): Promise<T | undefined> {
  const refuse = (why: string): never => {
    throw new StoreError('DAMAGED', `the state file ${path} ${why}, or move it away: then ${format.lossDescription}`);
  };
  let text: string;
  try {
    text = await readFile(path, 'utf8');
  } catch (error) {
    if (error instanceof Error && 'code' in error && error.code === 'ENOENT') return undefined;
    return refuse(`cannot be read (${errorMessage(error)}); let the user that runs Weir read it`);
  }
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch (error) {
    return refuse(`is damaged (${errorMessage(error)}); restore it from a backup`);
  }
  if (!isRecord(value) || value.weir !== format.kind) return refuse('is damaged; restore it from a backup');
  if (value.version !== STATE_FILE_VERSION) return refuse(`was written by another version of Weir; run that one`);
  return format.decode(value) ?? refuse('is damaged; restore it from a backup');
}

/** Puts it in place of the old one in one step: after a crash there is the one or the other, whole. */
export async function writeState<T>(path: string, format: StateFormat<T>, content: T): Promise<void> {
  const text = `${JSON.stringify({ weir: format.kind, version: STATE_FILE_VERSION, ...format.encode(content) })}\n`;
  const temporary = `${path}.tmp`;
  const file = await open(temporary, 'w', 0o600);
  try {
    await file.writeFile(text);
    await file.sync();
  } finally {
    await file.close();
  }
  await rename(temporary, path);
  const directory = await open(dirname(path), 'r');
  try {
    await directory.sync();
  } finally {
    await directory.close();
  }
}

/** Makes the directory unless it is there; throws DAMAGED when nothing can be kept in it. */
export async function prepareStateDirectory(path: string): Promise<void> {
  try {
    await ensureDirectory(path);
    await access(path, constants.W_OK | constants.X_OK);
  } catch (error) {
    const reason = error instanceof WeirError ? error.cause : error;
    throw new StoreError(
      'DAMAGED',
      `the state directory ${path} cannot be used (${errorMessage(reason)}); choose one that the user that runs Weir may write`,
    );
  }
}

function isRecord(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}
