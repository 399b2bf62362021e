import { runWrk, type WrkOptions, type WrkReport, wrkReportErrors } from '../load/wrk.ts';
import { type TrafficBounds, trafficBetween } from '../measure/traffic-bounds.ts';

/** One kind of load. `run` applies the load to a port, and `figure` computes the figure from the result and the CPU time. */
export type Load<Backend extends string> = {
  readonly title: string;
  readonly unit: string;
  readonly backend: Backend;
  run(port: number, seconds: number): Promise<LoadResult>;
  figure(cpuMs: number, loaded: LoadResult): number;
};

export type LoadResult = {
  /** Number of requests, connections, bytes or round trips, depending on the load. */
  readonly count: number;
  readonly ms: number;
  readonly traffic: TrafficBounds;
  /** The reasons why the result is invalid; empty if the result is valid. */
  readonly errors: readonly string[];
};

export function cpuMicrosecondsPerUnit(cpuMs: number, { count }: LoadResult): number {
  return (cpuMs * 1000) / count;
}

export async function runWrkLoad(options: WrkOptions): Promise<LoadResult> {
  const report = await runWrk(options);
  return {
    count: report.requests,
    ms: report.microseconds / 1000,
    traffic: wrkTraffic(report, options),
    errors: wrkReportErrors(report),
  };
}

/** Returns the traffic of a run of wrk: a range, because wrk does not count the requests that are in progress when it stops. */
export function wrkTraffic(
  { requests, bytes, requestBytes }: WrkReport,
  { connections, headers }: Pick<WrkOptions, 'connections' | 'headers'>,
): TrafficBounds {
  const isKeepAlive = !headers.includes('Connection: close');
  const responseBytes = Math.ceil(bytes / Math.max(1, requests));
  const counted = { receivedBytes: requests * requestBytes, sentBytes: bytes };
  const inProgress = { receivedBytes: connections * requestBytes, sentBytes: connections * responseBytes };
  return trafficBetween(
    { ...counted, connections: isKeepAlive ? connections : requests },
    {
      receivedBytes: counted.receivedBytes + inProgress.receivedBytes,
      sentBytes: counted.sentBytes + inProgress.sentBytes,
      // wrk opens one more connection before the run, to test the address
      connections: connections + 1 + (isKeepAlive ? 0 : requests),
    },
  );
}
