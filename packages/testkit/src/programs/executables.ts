import { accessSync, constants } from 'node:fs';
import { delimiter, join } from 'node:path';

/** The places below PATH, and below further folders, where there is an executable file of this name. */
export function findExecutables(name: string, path: string | undefined, further: readonly string[] = []): string[] {
  const folders = [...(path ?? '').split(delimiter).filter(Boolean), ...further];
  return [...new Set(folders)].map((folder) => join(folder, name)).filter(isExecutable);
}

export function isExecutable(path: string): boolean {
  try {
    accessSync(path, constants.X_OK);
    return true;
  } catch {
    return false;
  }
}
