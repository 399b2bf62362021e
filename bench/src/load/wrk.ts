import { fileURLToPath } from 'node:url';
import { programPath, spawnProcess } from '@weir/testkit';
import { parseWrkReport, type WrkReport } from './wrk-report.ts';

export type WrkOptions = {
  readonly port: number;
  readonly seconds: number;
  readonly connections: number;
  readonly headers: readonly string[];
};

const REPORT_SCRIPT = fileURLToPath(new URL('./wrk-report.lua', import.meta.url));

/** One thread of wrk against 127.0.0.1. */
export async function runWrk({ port, seconds, connections, headers }: WrkOptions): Promise<WrkReport> {
  const flags = ['-t1', `-c${connections}`, `-d${seconds}s`, '-s', REPORT_SCRIPT];
  const args = [...flags, ...headers.flatMap((header) => ['-H', header]), `http://127.0.0.1:${port}/`];
  await using wrk = await spawnProcess({ command: programPath('wrk'), args, name: 'wrk', mayExit: true });
  await wrk.exited;
  return parseWrkReport(wrk.output());
}
