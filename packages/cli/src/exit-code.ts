/** What every command answers with. */
export const EXIT_OK = 0;
export const EXIT_PROBLEM = 1;
/** Wrong usage, or a world in which the command cannot begin: nothing there, port taken, password refused. */
export const EXIT_USAGE = 2;

export type ExitCode = typeof EXIT_OK | typeof EXIT_PROBLEM | typeof EXIT_USAGE;
