import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

export type TemporaryDirectory = AsyncDisposable & { readonly path: string; close(): Promise<void> };

/** An empty folder of its own; `close` removes it with all that is in it. */
export function temporaryDirectory(label = 'test'): TemporaryDirectory {
  const path = mkdtempSync(join(tmpdir(), `weir-${label}-`));
  const close = async (): Promise<void> => rmSync(path, { recursive: true, force: true, maxRetries: 3 });
  return { path, close, [Symbol.asyncDispose]: close };
}
