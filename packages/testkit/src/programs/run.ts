import { spawn } from 'node:child_process';

export type RunOptions = {
  readonly cwd?: string;
  readonly env?: NodeJS.ProcessEnv;
  readonly stdin?: string;
  /** Each line of stderr as it comes, for progress. */
  readonly onErrorLine?: (line: string) => void;
};

/** Runs a program to its end and returns its stdout. A failure throws with the last lines that it wrote. */
export function run(command: string, args: readonly string[], options: RunOptions = {}): Promise<string> {
  return new Promise((resolve, reject) => {
    const child = spawn(command, args, { cwd: options.cwd, env: options.env ?? process.env, stdio: 'pipe' });
    child.stdin.on('error', () => {}); // it may end without reading all; its exit code tells
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
      if (code === 0) resolve(output);
      else
        reject(
          new Error(`${command} ${args[0] ?? ''}: ${lastLines(errors || output)} (${signal ?? `exit code ${code}`})`),
        );
    });
  });
}

function lastLines(text: string): string {
  return text.trim().split('\n').slice(-3).join(' | ');
}
