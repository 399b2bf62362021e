import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

export type TemporaryDirectory = AsyncDisposable & { readonly path: string; close(): Promise<void> };

const openDirectories = new Set<string>();

/** An empty folder of its own; `close` removes it with all that is in it, and so does the end of the process. */
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

/** Those that a failing test did not come to close. A child that ends after us may still write into one: then some of it stays. */
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
