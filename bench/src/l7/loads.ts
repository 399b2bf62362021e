import { cpuMicrosecondsPerUnit, type Load, type LoadResult, runWrkLoad } from '../comparison/load.ts';
import type { OpenLoop } from '../comparison/measure-latency.ts';
import { type OpenLoopReport, runOpenLoop, runTlsConnections, type TlsConnectionsReport } from '../load/generators.ts';
import { type H2loadOptions, h2loadReportErrors, runH2load } from '../load/h2load.ts';
import type { WrkOptions } from '../load/wrk.ts';
import { type TrafficBounds, trafficBetween } from '../measure/traffic-bounds.ts';
import { type BackendDocument, DOCUMENTS } from './backend.ts';
import { GRPC_CALL } from './grpc-backend.ts';
import type { L7Listener } from './listeners.ts';
import { UNKNOWN_TRAFFIC } from './relay-checks.ts';
import { BROWSER_FIELDS, CLOSE_FIELD, requestText } from './requests.ts';
import { pathWithin, ROUTES } from './routes.ts';

type L7Load = Load<L7Listener>;

const KEPT_CONNECTIONS = 64;
const PER_REQUEST = 'µs of CPU per request';
const PER_CONNECTION = 'µs of CPU per connection';

export const keptRequests: L7Load = wrkLoad('kept connections', {});

export const oneConnectionPerRequest: L7Load = wrkLoad('one connection per request', {
  ...{ unit: PER_CONNECTION, connections: 32, headers: [...BROWSER_FIELDS, CLOSE_FIELD] },
});

const TARGETS = ROUTES.map((route) => `${route.host}${pathWithin(route)}`);

export const requestsWithOneRoute: L7Load = wrkLoad('1 route', { targets: TARGETS });
export const requestsWithAllRoutes: L7Load = {
  ...wrkLoad(`${ROUTES.length} routes`, { listener: 'routes', targets: TARGETS }),
  // A connection carries requests of several Services, so the number of connections of each Service is not defined.
  run: async (port, seconds) => {
    const result = await requestsWithOneRoute.run(port, seconds);
    return { ...result, traffic: { ...result.traffic, connections: UNKNOWN_TRAFFIC.connections } };
  },
};

/** Fewer than for small responses, because the socket buffers of 64 responses of 1 MB exceed the processor's caches. */
const BODY_CONNECTIONS = 16;

export const uploadLoad: L7Load = documentLoad('request bodies of 10 KB', DOCUMENTS.upload);
export const bodyLoads: readonly L7Load[] = [
  documentLoad('responses of 0 bytes', DOCUMENTS.empty),
  documentLoad('responses of 10 KB', DOCUMENTS['10 KB']),
  documentLoad('responses of 1 MB', DOCUMENTS['1 MB']),
  uploadLoad,
];

function documentLoad(title: string, { path, uploadBytes }: BackendDocument): L7Load {
  const upload = uploadBytes === undefined ? {} : { uploadBytes };
  return wrkLoad(title, { path, ...upload, connections: BODY_CONNECTIONS });
}

export const keptTlsRequests: L7Load = wrkLoad('kept TLS connections', { listener: 'https', isTls: true });

export const fullHandshakes: L7Load = tlsConnectionLoad('full TLS handshakes', { resumes: false });
export const resumedHandshakes: L7Load = tlsConnectionLoad('resumed TLS handshakes', { resumes: true });

const H2_CONNECTIONS = 32;
const H2_STREAMS = 4;

export const http2Requests: L7Load = h2Load('HTTP/2', { listener: 'http2', headers: BROWSER_FIELDS });
export const grpcCalls: L7Load = h2Load('gRPC', {
  listener: 'grpc',
  path: GRPC_CALL.path,
  headers: GRPC_CALL.fields,
  body: GRPC_CALL.request,
});

function h2Load(
  title: string,
  { listener, ...request }: { readonly listener: L7Listener } & Pick<H2loadOptions, 'path' | 'headers' | 'body'>,
): L7Load {
  return {
    ...{ title, unit: PER_REQUEST, backend: listener },
    async run(port, seconds) {
      const report = await runH2load({ port, seconds, connections: H2_CONNECTIONS, streams: H2_STREAMS, ...request });
      return {
        count: report.succeeded,
        ms: seconds * 1000,
        traffic: UNKNOWN_TRAFFIC,
        errors: h2loadReportErrors(report),
      };
    },
    figure: cpuMicrosecondsPerUnit,
  };
}

const LATENCY_REQUEST = requestText({ host: 'bench.example', path: DOCUMENTS.small.path, fields: BROWSER_FIELDS });

/** The open loop of `latency`. */
export const requestLoop: OpenLoop<L7Listener> = {
  backend: 'http',
  unit: 'requests',
  tooSlow: ['http-proxy'],
  run: (port, options) =>
    runOpenLoop({
      ...{ port, connections: KEPT_CONNECTIONS, ...options },
      request: { text: LATENCY_REQUEST, expectedBody: DOCUMENTS.small.body },
    }),
  trafficOf: requestLoopTraffic,
};

/** Returns the traffic of an open loop. An overloaded proxy may have counted more than the client received. */
function requestLoopTraffic(report: OpenLoopReport): TrafficBounds {
  const { receivedBytes } = report;
  if (report.kind === 'measured') {
    const sent = { receivedBytes: report.messages * LATENCY_REQUEST.length, sentBytes: receivedBytes };
    const totals = { ...sent, connections: KEPT_CONNECTIONS };
    return trafficBetween(totals, totals);
  }
  const { echoed, sent } = report;
  return trafficBetween(
    { receivedBytes: echoed * LATENCY_REQUEST.length, sentBytes: receivedBytes, connections: KEPT_CONNECTIONS },
    { receivedBytes: sent * LATENCY_REQUEST.length, sentBytes: Infinity, connections: KEPT_CONNECTIONS },
  );
}

type WrkLoadOptions = Partial<Omit<WrkOptions, 'port' | 'seconds'>> & {
  readonly listener?: L7Listener;
  readonly unit?: string;
};

/** Returns a load of wrk. Default: requests for the small document over 64 kept connections, with the fields of a browser. */
function wrkLoad(title: string, { listener = 'http', unit = PER_REQUEST, ...options }: WrkLoadOptions): L7Load {
  const defaults = { connections: KEPT_CONNECTIONS, headers: BROWSER_FIELDS };
  return {
    ...{ title, unit, backend: listener },
    run: (port, seconds) => runWrkLoad({ port, seconds, ...defaults, ...options }),
    figure: cpuMicrosecondsPerUnit,
  };
}

const TLS_CONNECTIONS = 8;
const TLS_REQUEST = requestText({
  ...{ host: 'bench.example', path: DOCUMENTS.small.path, fields: [...BROWSER_FIELDS, CLOSE_FIELD] },
});

function tlsConnectionLoad(title: string, { resumes }: { readonly resumes: boolean }): L7Load {
  return {
    ...{ title, unit: PER_CONNECTION, backend: 'https' },
    async run(port, seconds) {
      const request = { text: TLS_REQUEST, expectedBody: DOCUMENTS.small.body };
      return tlsLoadResult(await runTlsConnections({ port, seconds, connections: TLS_CONNECTIONS, resumes, request }), {
        resumes,
      });
    },
    figure: cpuMicrosecondsPerUnit,
  };
}

/** Returns the result of TLS connections. It is invalid if a connection was resumed or not resumed against the expectation. */
export function tlsLoadResult(report: TlsConnectionsReport, { resumes }: { readonly resumes: boolean }): LoadResult {
  const { connections, resumed, ms, sentBytes, receivedBytes } = report;
  // The first connection gives the session that the others resume.
  const expected = resumes ? connections - 1 : 0;
  const traffic = { receivedBytes: sentBytes, sentBytes: receivedBytes, connections };
  return {
    ...{ count: connections, ms },
    traffic: trafficBetween(traffic, traffic),
    errors: resumed === expected ? [] : [`${resumed} instead of ${expected} connections were resumed`],
  };
}
