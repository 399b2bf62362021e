// Somebody who runs kubectl all the time, one after the other, and tries again when it fails.
import { programPath, spawnProcess } from '@weir/testkit';

export interface KubectlLoop {
  /** How many times it has answered. */
  readonly succeeded: number;
  /** What failed, each with how many had failed in a row then. */
  readonly failures: readonly { readonly inARow: number; readonly said: string }[];
  close(): Promise<void>;
}

export function startKubectlLoop(kubeconfig: string, args: readonly string[]): KubectlLoop {
  const failures: { inARow: number; said: string }[] = [];
  let answered = 0;
  let inARow = 0;
  let isOver = false;
  const loop = async (): Promise<void> => {
    while (!isOver) {
      const kubectl = await spawnProcess({
        command: programPath('kubectl'),
        args: [...args, '--request-timeout=10s'],
        env: { ...process.env, KUBECONFIG: kubeconfig },
        mayExit: true,
      });
      const { code } = await kubectl.exited;
      inARow = code === 0 ? 0 : inARow + 1;
      if (code === 0) answered += 1;
      else failures.push({ inARow, said: kubectl.output() });
    }
  };
  const looping = loop();
  return {
    get succeeded() {
      return answered;
    },
    failures,
    async close() {
      isOver = true;
      await looping;
    },
  };
}
