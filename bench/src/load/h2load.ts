import { spawnProcess } from '@weir/testkit';
import { programPath } from '@weir/tools';

export type H2loadOptions = {
  readonly port: number;
  readonly seconds: number;
  readonly connections: number;
  /** Concurrent streams of each connection. */
  readonly streams: number;
  readonly headers: readonly string[];
};

/** Runs h2load with one thread against a port of 127.0.0.1, with HTTP/2 and prior knowledge (RFC 9113 §3.3). */
export async function runH2load({
  port,
  seconds,
  connections,
  streams,
  headers,
}: H2loadOptions): Promise<H2loadReport> {
  const flags = ['-t1', `-c${connections}`, `-m${streams}`, '-D', String(seconds)];
  const args = [...flags, ...headers.flatMap((header) => ['-H', header]), `http://127.0.0.1:${port}/`];
  await using h2load = await spawnProcess({ command: programPath('h2load'), args, name: 'h2load', mayExit: true });
  await h2load.exited;
  return parseH2loadReport(h2load.output());
}

export type H2loadReport = {
  /** Number of responses with a status of the class 2xx. */
  readonly succeeded: number;
  /** Number of responses with another status, and of requests without a response. */
  readonly failed: number;
};

/** Parses the output of h2load. Throws if a line is missing. */
export function parseH2loadReport(output: string): H2loadReport {
  const [, succeeded] = /^status codes: (\d+) 2xx, /m.exec(output) ?? [];
  const [, failed] = /^requests: .* (\d+) failed, /m.exec(output) ?? [];
  if (succeeded === undefined || failed === undefined) {
    throw new Error(`h2load printed no report: ${output.trim().split('\n').at(-1) || 'no output'}`);
  }
  return { succeeded: Number(succeeded), failed: Number(failed) };
}

/** Returns the reasons why a run is invalid; empty if the run is valid. */
export function h2loadReportErrors({ succeeded, failed }: H2loadReport): string[] {
  return [
    ...(succeeded === 0 ? ['no request had a response of the class 2xx'] : []),
    ...(failed > 0 ? [`${failed} requests failed`] : []),
  ];
}
