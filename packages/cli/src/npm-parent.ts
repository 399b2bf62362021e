import { readFileSync } from 'node:fs';

/** npm starts a command through a shell, which may start another shell. */
const MAX_SHELLS = 3;
const SHELLS = ['sh', 'bash', 'dash', 'ash', 'zsh', 'ksh', 'busybox'];
const CHECK_INTERVAL_MS = 500;

/**
 * Calls `onEnd` when the npx or npm that started this process ends. Neither passes SIGTERM on, so this process would otherwise outlive the
 * npx that the user ended. Does nothing if npm did not start this process. The timer does not keep the process running.
 */
export function watchNpm(
  { npm_command: command }: Readonly<Record<string, string | undefined>>,
  onEnd: () => void,
): void {
  if (command === undefined) return;
  const ancestors = shellsAbove();
  const timer = setInterval(() => {
    const isAlive =
      process.ppid === ancestors[0]?.parent && ancestors.slice(1).every(({ pid, parent }) => parentOf(pid) === parent);
    if (isAlive) return;
    clearInterval(timer);
    onEnd();
  }, CHECK_INTERVAL_MS);
  timer.unref();
}

interface Ancestor {
  readonly pid: number;
  readonly parent: number;
}

/** Returns this process and the shells between it and npm, each with its parent. The last parent is npm. */
function shellsAbove(): readonly Ancestor[] {
  const ancestors: Ancestor[] = [{ pid: process.pid, parent: process.ppid }];
  for (let count = 0; count < MAX_SHELLS; count += 1) {
    const pid = ancestors.at(-1)?.parent ?? 0;
    const parent = SHELLS.includes(nameOf(pid)) ? parentOf(pid) : undefined;
    if (parent === undefined) break;
    ancestors.push({ pid, parent });
  }
  return ancestors;
}

/** Returns the name of a process; empty if the process is gone, or if the system has no /proc. */
function nameOf(pid: number): string {
  return statOf(pid)?.name ?? '';
}

/** Returns the parent of a process; undefined if the process is gone. */
function parentOf(pid: number): number | undefined {
  return statOf(pid)?.parent;
}

/** Reads the second and fourth field of /proc/PID/stat (proc(5)). The name is in parentheses and may contain parentheses. */
function statOf(pid: number): { readonly name: string; readonly parent: number } | undefined {
  try {
    const text = readFileSync(`/proc/${pid}/stat`, 'utf8');
    const end = text.lastIndexOf(')');
    const name = text.slice(text.indexOf('(') + 1, end);
    return { name, parent: Number(text.slice(end + 2).split(' ')[1]) };
  } catch {
    return undefined;
  }
}
