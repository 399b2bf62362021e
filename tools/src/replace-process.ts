/** Replaces this process by another program, which keeps its pid, stdio and signals. Does not return. */
export function replaceProcess(command: readonly [string, ...string[]], env: NodeJS.ProcessEnv): never {
  if (!process.execve)
    throw new Error(`Node ${process.version} cannot replace itself; 22.15 or later can, on Linux and macOS`);
  const defined = Object.entries(env).filter((entry): entry is [string, string] => entry[1] !== undefined);
  // env(1) looks the program up on PATH, which execve itself does not
  return process.execve('/usr/bin/env', ['env', ...command], Object.fromEntries(defined));
}
