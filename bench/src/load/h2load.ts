import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { spawnProcess, temporaryDirectory } from '@weir/testkit';
import { programPath } from '@weir/tools';

export type H2loadOptions = {
  readonly port: number;
  readonly seconds: number;
  readonly connections: number;
  /** Concurrent streams of each connection. */
  readonly streams: number;
  /** Defaults to `/`. */
  readonly path?: string;
  readonly headers: readonly string[];
  /** The body of each request, which makes the request a POST. */
  readonly body?: Uint8Array;
};

/** Runs h2load with one thread against a port of 127.0.0.1, with HTTP/2 and prior knowledge (RFC 9113 §3.3). */
export async function runH2load({
  port,
  seconds,
  connections,
  streams,
  path = '/',
  headers,
  body,
}: H2loadOptions): Promise<H2loadReport> {
  await using directory = temporaryDirectory('h2load');
  const bodyFile = join(directory.path, 'body');
  if (body !== undefined) writeFileSync(bodyFile, body);
  const flags = ['-t1', `-c${connections}`, `-m${streams}`, '-D', String(seconds)];
  const data = body === undefined ? [] : ['-d', bodyFile];
  const args = [...flags, ...data, ...headers.flatMap((header) => ['-H', header]), `http://127.0.0.1:${port}${path}`];
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
