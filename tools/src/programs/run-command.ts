import { spawn } from 'node:child_process';
import { accessSync, constants } from 'node:fs';
import { delimiter, join } from 'node:path';
import { withParentDeathSignal } from '@weir/testkit';

export type RunCommandOptions = {
  readonly cwd?: string;
  readonly env?: NodeJS.ProcessEnv;
  readonly stdin?: string;
  /** Called for each line of stderr, to report progress. */
  readonly onErrorLine?: (line: string) => void;
};

/** Runs a program until it exits and returns its stdout. If the program fails, throws an error with the last lines of its output. */
export function runCommand(command: string, args: readonly string[], options: RunCommandOptions = {}): Promise<string> {
  const { cwd, env = process.env } = options;
  return new Promise((resolve, reject) => {
    if (!isOnPath(command, env.PATH)) throw new Error(`${command} is not on PATH`);
    const child = spawn(...withParentDeathSignal('TERM', command, args), { cwd, env, stdio: 'pipe' });
    child.stdin.on('error', () => {}); // ignored, because a program may exit without reading its stdin
    child.stdin.end(options.stdin ?? '');
    let output = '';
    let errors = '';
    let rest = '';
    child.stdout.setEncoding('utf8').on('data', (text: string) => {
      output += text;
    });
    child.stderr.setEncoding('utf8').on('data', (text: string) => {
      errors = (errors + text).slice(-4096);
      const lines = (rest + text).split('\n');
      rest = lines.pop() ?? '';
      for (const line of lines) options.onErrorLine?.(line);
    });
    child.once('error', reject);
    child.once('close', (code, signal) => {
      if (code === 0) return resolve(output);
      const cause = signal ?? `exit code ${code}`;
      reject(new Error(`${command} ${args[0] ?? ''}: ${lastLines(errors || output)} (${cause})`));
    });
  });
}

function isOnPath(command: string, path: string | undefined): boolean {
  return command.includes('/') ? isExecutable(command) : findExecutables(command, path).length > 0;
}

function lastLines(text: string): string {
  return text.trim().split('\n').slice(-3).join(' | ');
}

/** Returns the paths of executable files with this name in the folders of PATH and in the folders `further`. */
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
