/** Replaces this process by another program with the same pid, stdio and signal dispositions. Does not return. */
export function replaceProcess(command: readonly [string, ...string[]], env: NodeJS.ProcessEnv): never {
  if (!process.execve)
    throw new Error(`Node ${process.version} lacks process.execve: use Node 22.15 or later on Linux or macOS`);
  const defined = Object.entries(env).filter((entry): entry is [string, string] => entry[1] !== undefined);
  // Starts the program through env(1), because env(1) searches PATH and execve(2) does not.
  return process.execve('/usr/bin/env', ['env', ...command], Object.fromEntries(defined));
}
