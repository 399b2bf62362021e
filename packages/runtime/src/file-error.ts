import { errorMessage } from './error-message.ts';
import { WeirError } from './weir-error.ts';

export type FileOperation = 'read' | 'write' | 'create';

const FILE_ERROR_ADVICE: Readonly<Record<string, string>> = {
  ENOENT: 'its directory does not exist; create it',
  EACCES: 'permission denied; give this user access, or choose another path',
  EPERM: 'permission denied; give this user access, or choose another path',
  EROFS: 'the file system is read-only; mount a writable volume there, or choose another path',
  ENOSPC: 'the disk is full; free some space',
  EDQUOT: 'the disk quota is used up; free some space',
  EISDIR: 'it is a directory; name a file',
  ENOTDIR: 'a part of the path is a file; choose another path',
  EEXIST: 'a file is in the way; remove it, or choose another path',
  EMFILE: 'this process has too many open files; raise its limit',
};

/** Why a file could not be read or written: what, where, and what to do. */
export function fileError(cause: unknown, verb: FileOperation, path: string): WeirError<'FILE_FAILED'> {
  const code = cause instanceof Error && 'code' in cause ? String(cause.code) : '';
  return new WeirError('FILE_FAILED', `cannot ${verb} ${path}: ${FILE_ERROR_ADVICE[code] ?? errorMessage(cause)}`, {
    cause,
  });
}
