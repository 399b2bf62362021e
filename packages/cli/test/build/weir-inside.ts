import { runWeir, type Terminal } from '../../src/index.ts';

export interface InProcessResult {
  readonly code: number;
  readonly stdout: string;
  readonly stderr: string;
}

export interface TestTerminalOptions {
  readonly env?: Readonly<Record<string, string | undefined>>;
  readonly columns?: number;
  readonly colour?: boolean;
  readonly signal?: AbortSignal;
}

/** A command in this process, without the second that a process takes to start. */
export async function runWeirInProcess(
  args: readonly string[],
  env: TestTerminalOptions['env'] = {},
): Promise<InProcessResult> {
  return runWeirOnTerminal({ env }, args);
}

/** On a screen of its own. */
export async function runWeirOnTerminal(
  screen: TestTerminalOptions,
  args: readonly string[],
): Promise<InProcessResult> {
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
