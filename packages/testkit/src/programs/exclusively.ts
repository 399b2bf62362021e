import { spawn } from 'node:child_process';
import { mkdirSync } from 'node:fs';
import { dirname } from 'node:path';
import { createInterface } from 'node:readline';

/** Of util-linux, which every Debian has. */
const FLOCK = 'flock';

/**
 * Runs `work` while no other process holds the same lock file. The kernel keeps the lock for flock(1), which holds it for
 * as long as our end of its stdin is open: a process that dies, however it dies, leaves no stale lock behind.
 * Where there is no flock(1) the work runs unlocked; results are put in place by rename, so that is slower, never wrong.
 */
export async function withFileLock<T>(lockFile: string, waiting: () => void, work: () => Promise<T>): Promise<T> {
  mkdirSync(dirname(lockFile), { recursive: true });
  const holder = spawn(FLOCK, ['--exclusive', lockFile, 'sh', '-c', 'echo held; exec cat > /dev/null'], {
    stdio: ['pipe', 'pipe', 'inherit'],
  });
  const notice = setTimeout(waiting, 500);
  try {
    await new Promise<void>((resolve, reject) => {
      createInterface({ input: holder.stdout }).once('line', () => resolve());
      holder.once('error', (error: NodeJS.ErrnoException) => (error.code === 'ENOENT' ? resolve() : reject(error)));
      holder.once('exit', (code) => reject(new Error(`flock ${lockFile} ended with exit code ${code}`)));
    });
    clearTimeout(notice);
    return await work();
  } finally {
    clearTimeout(notice);
    holder.stdin.end();
  }
}
