import { fileURLToPath } from 'node:url';
import { programPath, spawnProcess } from '@weir/testkit';

/** What helm printed. */
export interface HelmResult {
  readonly ok: boolean;
  /** Of stdout alone. */
  readonly stdout: string;
  /** Of both. */
  readonly output: string;
}

/** Runs helm, which knows of no cluster but that of `env`. URLs among the arguments are paths. */
export async function runHelm(args: readonly (string | URL)[], env: NodeJS.ProcessEnv = {}): Promise<HelmResult> {
  const running = await spawnProcess({
    command: programPath('helm'),
    name: 'helm',
    args: args.map((each) => (each instanceof URL ? fileURLToPath(each) : each)),
    env: { ...process.env, KUBECONFIG: '/dev/null', ...env },
    mayExit: true,
  });
  const { code } = await running.exited;
  return { ok: code === 0, stdout: running.stdout(), output: running.output() };
}
