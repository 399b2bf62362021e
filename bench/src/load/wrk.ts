import { fileURLToPath } from 'node:url';
import { spawnProcess } from '@weir/testkit';
import { programPath } from '@weir/tools';

export type WrkOptions = {
  readonly port: number;
  readonly seconds: number;
  readonly connections: number;
  readonly headers: readonly string[];
  /** Default: `/`. */
  readonly path?: string;
  readonly isTls?: boolean;
  /** The size of the body of each request, which is then a POST. */
  readonly uploadBytes?: number;
  /** Targets such as `host.example/path`, of one length, that are requested in turn. */
  readonly targets?: readonly string[];
};

const REPORT_SCRIPT = fileURLToPath(new URL('./wrk-report.lua', import.meta.url));

/** Runs wrk with one thread against a port of 127.0.0.1. */
export async function runWrk(options: WrkOptions): Promise<WrkReport> {
  const { port, seconds, connections, headers, path = '/', isTls = false, uploadBytes, targets = [] } = options;
  const flags = ['-t1', `-c${connections}`, `-d${seconds}s`, '-s', REPORT_SCRIPT];
  const url = `${isTls ? 'https' : 'http'}://127.0.0.1:${port}${path}`;
  const scriptArguments = [...(uploadBytes === undefined ? [] : [`body=${uploadBytes}`]), ...targets];
  const args = [...flags, ...headers.flatMap((header) => ['-H', header]), url, '--', ...scriptArguments];
  await using wrk = await spawnProcess({ command: programPath('wrk'), args, name: 'wrk', mayExit: true });
  await wrk.exited;
  return parseWrkReport(wrk.output());
}

export type WrkReport = {
  /** Number of complete responses. */
  readonly requests: number;
  /** Number of bytes that wrk received. */
  readonly bytes: number;
  readonly microseconds: number;
  readonly requestBytes: number;
  readonly errors: WrkErrors;
};

/** Number of errors by kind. The kind `status` is a response with an HTTP status of 400 or higher. */
export type WrkErrors = Readonly<Record<'connect' | 'read' | 'write' | 'status' | 'timeout', number>>;

/** Parses the line that `wrk-report.lua` prints. Throws if the line is missing. */
export function parseWrkReport(output: string): WrkReport {
  const [, json] = /^report (\{.*\})$/m.exec(output) ?? [];
  if (json === undefined) throw new Error(`wrk printed no report: ${output.trim().split('\n').at(-1) || 'no output'}`);
  return JSON.parse(json) as WrkReport;
}

/** Returns the reasons why a run is invalid; empty if the run is valid. */
export function wrkReportErrors({ requests, errors }: WrkReport): string[] {
  const failed = Object.entries(errors).filter(([, count]) => count > 0);
  const messages = failed.map(([kind, count]) => `${count} ${kind} error${count === 1 ? '' : 's'}`);
  return requests === 0 ? ['no request had a response', ...messages] : messages;
}
