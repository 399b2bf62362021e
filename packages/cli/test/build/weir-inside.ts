import { runWeir, type Terminal } from '../../src/index.ts';

export interface Said {
  readonly code: number;
  readonly stdout: string;
  readonly stderr: string;
}

export interface Screen {
  readonly env?: Readonly<Record<string, string | undefined>>;
  readonly columns?: number;
  readonly colour?: boolean;
  readonly signal?: AbortSignal;
}

/** A command in this process, without the second that a process takes to start. */
export async function weirInside(args: readonly string[], env: Screen['env'] = {}): Promise<Said> {
  return weirOn({ env }, args);
}

/** On a screen of its own. */
export async function weirOn(screen: Screen, args: readonly string[]): Promise<Said> {
  let stdout = '';
  let stderr = '';
  const terminal: Terminal = {
    env: screen.env ?? {},
    out: (text) => {
      stdout += text;
    },
    err: (text) => {
      stderr += text;
    },
    isTerminal: screen.columns !== undefined,
    columns: () => screen.columns,
    colour: screen.colour ?? false,
    signal: screen.signal ?? new AbortController().signal,
  };
  const code = await runWeir(args, terminal);
  return { code, stdout, stderr };
}
