import { execFileSync } from 'node:child_process';
import { availableParallelism } from 'node:os';

// If the scheduler chooses where processes run, the CPU time per request of two processes of the same program differs by up to 25 %
// for some seconds: a proxy is cheaper, for example, while the program that sends its requests runs on another processor.

/** The processor of the subjects, as `taskset` expects it. */
export const SUBJECT_PROCESSOR = '0';

/** Moves this process, and each process that it starts from now on, away from the processor of the subjects. */
export function leaveSubjectProcessor(): void {
  const count = availableParallelism();
  if (count < 2) throw new Error('needs 2 processors: one for the subjects, and one for load and backends');
  runOn(`1-${count - 1}`, process.pid);
}

/**
 * Moves all threads of a process to processors, for example `0` or `1-3`. Threads that start later run there too. Throws if
 * `taskset` is missing or this process may not use the processors.
 */
export function runOn(processors: string, pid: number): void {
  try {
    execFileSync('taskset', ['--all-tasks', '--cpu-list', '--pid', processors, String(pid)], { stdio: 'pipe' });
  } catch (error) {
    const { message } = error as Error;
    throw new Error(`cannot run process ${pid} on processor ${processors}: ${message} (taskset is part of util-linux)`);
  }
}
