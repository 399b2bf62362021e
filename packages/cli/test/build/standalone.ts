import type { SpawnedProcess } from '@weir/testkit';
import type { Manifests } from './manifests.ts';
import { type Ran, startWeir, weir } from './run-weir.ts';

export interface Standalone extends AsyncDisposable {
  readonly process: SpawnedProcess;
  /** Of the console. */
  readonly url: string;
  /** A client command that talks to it. */
  weir(...args: readonly string[]): Promise<Ran>;
}

/** `weir standalone` over the manifests, ready, with a console on any free port and one worker. */
export async function standalone(files: Manifests, args: readonly string[] = []): Promise<Standalone> {
  const all = ['standalone', '-f', files.path, '--workers', '1', '--console', '127.0.0.1:0', ...args];
  const process = await startWeir(all, { readyWhen: /^ready/m });
  const url = /^ready (http:\S+)$/m.exec(process.output())?.[1] ?? '';
  return {
    process,
    url,
    weir: (...command) => weir(command, { WEIR_SERVER: url }),
    [Symbol.asyncDispose]: () => process.close(),
  };
}
