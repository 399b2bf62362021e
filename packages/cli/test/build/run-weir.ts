import { fileURLToPath } from 'node:url';
import { type SpawnedProcess, spawnProcess } from '@weir/testkit';

const BIN = fileURLToPath(new URL('../../bin/weir.js', import.meta.url));

export interface ProcessResult {
  readonly code: number | null;
  readonly stdout: string;
  /** Both streams, as they came. */
  readonly output: string;
  // biome-ignore lint/suspicious/noExplicitAny: tests look into answers of every shape
  readonly json: any;
}

type Environment = Readonly<Record<string, string | undefined>>;

/** Runs the real command to its end. */
export async function runWeirProcess(args: readonly string[], env: Environment = {}): Promise<ProcessResult> {
  await using command = await startWeirProcess(args, { env });
  const { code } = await command.exited;
  const stdout = command.stdout();
  return {
    code,
    stdout,
    output: command.output(),
    get json() {
      return JSON.parse(stdout);
    },
  };
}

interface StartOptions {
  readonly env?: Environment;
  readonly readyWhen?: RegExp;
  readonly node?: string;
  /** What a shell does before it becomes the command, such as `ulimit -n 1024`. */
  readonly shell?: string;
}

export function startWeirProcess(
  args: readonly string[],
  { env = {}, readyWhen, node = process.execPath, shell }: StartOptions = {},
): Promise<SpawnedProcess> {
  return spawnProcess({
    ...(shell === undefined
      ? { command: node, args: [BIN, ...args] }
      : { command: 'sh', args: ['-c', `${shell}; exec "$@"`, 'sh', node, BIN, ...args] }),
    env: { ...process.env, NO_COLOR: undefined, WEIR_SERVER: undefined, WEIR_LOG_LEVEL: undefined, ...env },
    name: `weir ${args.join(' ')}`,
    mayExit: true,
    ...(readyWhen === undefined ? {} : { readyWhen }),
  });
}
