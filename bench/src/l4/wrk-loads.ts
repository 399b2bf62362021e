import { runWrk, type WrkOptions } from '../load/wrk.ts';
import { type WrkReport, wrkReportErrors } from '../load/wrk-report.ts';
import { type TrafficBounds, trafficBetween } from '../measure/moved.ts';
import { cpuMicrosecondsPerUnit, type Load, type LoadResult } from './load.ts';

export const keepAliveRequests: Load = {
  title: 'kept connections',
  unit: 'µs of CPU per request',
  backend: 'answers',
  run: (port, seconds) => runWrkLoad({ port, seconds, connections: 64, headers: [] }),
  figure: cpuMicrosecondsPerUnit,
};

export const oneConnectionPerRequest: Load = {
  title: 'one connection per request',
  unit: 'µs of CPU per connection',
  backend: 'answers',
  run: (port, seconds) => runWrkLoad({ port, seconds, connections: 32, headers: ['Connection: close'] }),
  figure: cpuMicrosecondsPerUnit,
};

async function runWrkLoad(options: WrkOptions): Promise<LoadResult> {
  const report = await runWrk(options);
  return {
    count: report.requests,
    ms: report.microseconds / 1000,
    traffic: wrkTraffic(report, options),
    errors: wrkReportErrors(report),
  };
}

/** wrk leaves in the middle: each connection may have a request under way that it does not count. */
export function wrkTraffic(
  { requests, bytes, requestBytes }: WrkReport,
  { connections, headers }: WrkOptions,
): TrafficBounds {
  const isKept = headers.length === 0;
  const answerBytes = Math.ceil(bytes / Math.max(1, requests));
  const counted = { receivedBytes: requests * requestBytes, sentBytes: bytes };
  const underWay = { receivedBytes: connections * requestBytes, sentBytes: connections * answerBytes };
  return trafficBetween(
    { ...counted, connections: isKept ? connections : requests },
    {
      receivedBytes: counted.receivedBytes + underWay.receivedBytes,
      sentBytes: counted.sentBytes + underWay.sentBytes,
      // and one with which wrk tries the address before it begins
      connections: connections + 1 + (isKept ? 0 : requests),
    },
  );
}
