import { runWrk, type WrkOptions } from '../load/wrk.ts';
import { complaintsAbout, type WrkReport } from '../load/wrk-report.ts';
import { between, type Moved } from '../measure/moved.ts';
import { type Load, type Loaded, microsecondsEach } from './load.ts';

export const keptConnections: Load = {
  title: 'kept connections',
  unit: 'µs of CPU per request',
  backend: 'answers',
  run: (port, seconds) => request({ port, seconds, connections: 64, headers: [] }),
  figure: microsecondsEach,
};

export const oneConnectionPerRequest: Load = {
  title: 'one connection per request',
  unit: 'µs of CPU per connection',
  backend: 'answers',
  run: (port, seconds) => request({ port, seconds, connections: 32, headers: ['Connection: close'] }),
  figure: microsecondsEach,
};

async function request(options: WrkOptions): Promise<Loaded> {
  const report = await runWrk(options);
  return {
    count: report.requests,
    ms: report.microseconds / 1000,
    moved: movedBy(report, options),
    complaints: complaintsAbout(report),
  };
}

/** wrk leaves in the middle: each connection may have a request under way that it does not count. */
export function movedBy({ requests, bytes, requestBytes }: WrkReport, { connections, headers }: WrkOptions): Moved {
  const isKept = headers.length === 0;
  const answerBytes = Math.ceil(bytes / Math.max(1, requests));
  const counted = { receivedBytes: requests * requestBytes, sentBytes: bytes };
  const underWay = { receivedBytes: connections * requestBytes, sentBytes: connections * answerBytes };
  return between(
    { ...counted, connections: isKept ? connections : requests },
    {
      receivedBytes: counted.receivedBytes + underWay.receivedBytes,
      sentBytes: counted.sentBytes + underWay.sentBytes,
      // and one with which wrk tries the address before it begins
      connections: connections + 1 + (isKept ? 0 : requests),
    },
  );
}
