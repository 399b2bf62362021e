import type { SpawnedProcess } from '@weir/testkit';
import type { ManifestDirectory } from './manifests.ts';
import { type ProcessResult, runWeirProcess, startWeirProcess } from './run-weir.ts';

export interface TestStandalone extends AsyncDisposable {
  readonly process: SpawnedProcess;
  /** Of the console. */
  readonly url: string;
  /** A client command that talks to it. */
  weir(...args: readonly string[]): Promise<ProcessResult>;
}

/** `weir standalone` over the manifests, ready, with a console on any free port and one worker. */
export async function startTestStandalone(
  files: ManifestDirectory,
  args: readonly string[] = [],
): Promise<TestStandalone> {
  const all = ['standalone', '-f', files.path, '--workers', '1', '--console', '127.0.0.1:0', ...args];
  const process = await startWeirProcess(all, { readyWhen: /^ready/m });
  const url = /^ready (http:\S+)$/m.exec(process.output())?.[1] ?? '';
  return {
    process,
    url,
    weir: (...command) => runWeirProcess(command, { WEIR_SERVER: url }),
    [Symbol.asyncDispose]: () => process.close(),
  };
}
