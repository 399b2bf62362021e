import { existsSync } from 'node:fs';

const SETPRIV = '/usr/bin/setpriv';

/**
 * The command, such that Linux sends it the signal when we end, even by SIGKILL: nothing is left behind that runs on, or holds a
 * lock. The request survives exec, so that the pid is the program's own.
 */
export function withParentDeathSignal(
  signal: 'KILL' | 'TERM',
  command: string,
  args: readonly string[],
): [command: string, args: readonly string[]] {
  return existsSync(SETPRIV) ? [SETPRIV, ['--pdeathsig', signal, command, ...args]] : [command, args];
}
