/** What a command sees of the world it was started in; `main.ts` makes the real one. */
export interface Terminal {
  readonly env: Readonly<Record<string, string | undefined>>;
  /** What was asked for. */
  out(text: string): void;
  /** Everything else: progress, problems, the line `ready`. */
  err(text: string): void;
  /** Whether stdout is a terminal: then a live view redraws. */
  readonly isTerminal: boolean;
  /** Width of the terminal; undefined when stdout is none. */
  columns(): number | undefined;
  readonly colour: boolean;
  /** Aborted by SIGINT, SIGTERM, or the end of whoever started us. */
  readonly signal: AbortSignal;
}

/** Colours only for eyes: not into files, and not where NO_COLOR asks for none (https://no-color.org: set and not empty). */
export function wantsColour(env: Terminal['env'], isTerminal: boolean): boolean {
  return isTerminal && (env.NO_COLOR ?? '') === '' && env.TERM !== 'dumb';
}
