import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

export type TemporaryDirectory = AsyncDisposable & { readonly path: string; close(): Promise<void> };

const openDirectories = new Set<string>();

/** Creates an empty directory. The directory is removed with its content by `close`, or when this process exits. */
export function temporaryDirectory(label = 'test'): TemporaryDirectory {
  if (openDirectories.size === 0) process.once('exit', removeOpenDirectories);
  const path = mkdtempSync(join(tmpdir(), `weir-${label}-`));
  openDirectories.add(path);
  const close = async (): Promise<void> => {
    removeDirectory(path);
    if (openDirectories.size === 0) process.off('exit', removeOpenDirectories);
  };
  return { path, close, [Symbol.asyncDispose]: close };
}

/**
 * Removes the directories that a failing test did not close. Ignores errors, because a child that outlives this process
 * may write into a directory during the removal.
 */
function removeOpenDirectories(): void {
  for (const path of openDirectories) {
    try {
      removeDirectory(path);
    } catch {}
  }
}

function removeDirectory(path: string): void {
  rmSync(path, { recursive: true, force: true, maxRetries: 3 });
  openDirectories.delete(path);
}
