/** What every command answers with. */
export const FINE = 0;
export const PROBLEM = 1;
/** Wrong usage, or a world in which the command cannot begin: nothing there, port taken, password refused. */
export const USAGE = 2;

export type ExitCode = typeof FINE | typeof PROBLEM | typeof USAGE;
