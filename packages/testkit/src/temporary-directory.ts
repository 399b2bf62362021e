import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

export type TemporaryDirectory = AsyncDisposable & { readonly path: string; close(): Promise<void> };

const openDirectories = new Set<string>();

/** Creates an empty directory. `close` and the exit of this process remove it with its content. */
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
 * Removes directories that a failing test did not close. A child that outlives this process may write into one of them again.
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
