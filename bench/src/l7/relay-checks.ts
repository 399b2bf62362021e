import assert from 'node:assert/strict';
import { once } from 'node:events';
import { connect, type OutgoingHttpHeaders } from 'node:http2';
import { connectClient, eventually } from '@weir/testkit';
import type { RelayCheck, RelayChecks } from '../comparison/measured-subject.ts';
import { exactTraffic, type TrafficBounds, trafficBetween } from '../measure/traffic-bounds.ts';
import { type BackendDocument, DOCUMENTS } from './backend.ts';
import { GRPC_CALL } from './grpc-backend.ts';
import type { L7Listener } from './listeners.ts';
import { BROWSER_FIELDS, CLOSE_FIELD, requestText } from './requests.ts';
import { pathWithin, ROUTES } from './routes.ts';

/** The traffic of HTTP/2 is unknown, because its clients do not report how many bytes of header blocks and data they exchange. */
export const UNKNOWN_TRAFFIC: TrafficBounds = trafficBetween(
  { receivedBytes: 0, sentBytes: 0, connections: 0 },
  { receivedBytes: Infinity, sentBytes: Infinity, connections: Infinity },
);

const LAST_ROUTE = ROUTES.slice(-1);

/** Each check verifies status and body of every kind of response that the scenarios request at the listener. */
export const L7_RELAY_CHECKS: RelayChecks<L7Listener> = {
  http: async (port, reportTraffic) => {
    for (const document of Object.values<BackendDocument>(DOCUMENTS)) {
      await checkResponse({ port, host: 'bench.example', ...document }, reportTraffic);
    }
  },
  routes: async (port, reportTraffic) => {
    for (const route of [...ROUTES.slice(0, 1), ...LAST_ROUTE]) {
      await checkResponse(
        { port, host: route.host, path: pathWithin(route), body: DOCUMENTS.small.body },
        reportTraffic,
      );
    }
  },
  https: (port, reportTraffic) =>
    checkResponse({ port, host: 'bench.example', ...DOCUMENTS.small, isTls: true }, reportTraffic),
  http2: (port, reportTraffic) => {
    const { path, body } = DOCUMENTS.small;
    return checkHttp2Response({ port, headers: { ':path': path }, expected: [200, body, undefined] }, reportTraffic);
  },
  grpc: (port, reportTraffic) => {
    const { path, fields, request, response } = GRPC_CALL;
    const headers = {
      ...{ ':method': 'POST', ':path': path },
      ...Object.fromEntries(fields.map((field) => field.split(': '))),
    };
    const expected = [200, response.toString('latin1'), '0'];
    return checkHttp2Response({ port, headers, content: request, expected }, reportTraffic);
  },
};

type CheckedRequest = BackendDocument & { readonly port: number; readonly host: string; readonly isTls?: boolean };

function checkResponse(request: CheckedRequest, reportTraffic: Parameters<RelayCheck>[1]): Promise<void> {
  const { port, host, path, body, uploadBytes, isTls } = request;
  const upload = uploadBytes === undefined ? {} : { uploadBytes };
  const text = requestText({ host, path, fields: [...BROWSER_FIELDS, CLOSE_FIELD], ...upload });
  return eventually(async () => {
    const tls = isTls ? { servername: host, rejectUnauthorized: false } : undefined;
    await using client = await connectClient({ port, ...(tls === undefined ? {} : { tls }) });
    await client.send(text);
    const ending = await client.ended;
    const response = client.buffered.toString('latin1');
    reportTraffic(exactTraffic({ receivedBytes: text.length, sentBytes: response.length, connections: 1 }));
    const bodyStart = response.indexOf('\r\n\r\n') + 4;
    assert.deepEqual(ending, { kind: 'end' }, `the connection for ${path} ended with ${JSON.stringify(ending)}`);
    assert.ok(
      response.startsWith('HTTP/1.1 200 ') && response.slice(bodyStart) === body,
      `not the response of nginx for ${path}: ${response.slice(0, 300)}`,
    );
  });
}

type CheckedStream = {
  readonly port: number;
  readonly headers: OutgoingHttpHeaders;
  readonly content?: Uint8Array;
  /** Status, body and the trailer `grpc-status`. */
  readonly expected: readonly unknown[];
};

function checkHttp2Response(
  { port, headers, content, expected }: CheckedStream,
  reportTraffic: Parameters<RelayCheck>[1],
): Promise<void> {
  reportTraffic(UNKNOWN_TRAFFIC);
  return eventually(async () => {
    const session = connect(`http://127.0.0.1:${port}`);
    session.on('error', () => {}); // ignored, because the stream fails too
    try {
      const stream = session.request(headers, { endStream: content === undefined });
      if (content !== undefined) stream.end(content);
      let grpcStatus: unknown;
      stream.on('trailers', (trailers) => {
        grpcStatus = trailers['grpc-status'];
      });
      const [response] = await once(stream, 'response');
      const body = Buffer.concat(await stream.toArray()).toString('latin1');
      assert.deepEqual([response[':status'], body, grpcStatus], expected);
    } finally {
      session.destroy();
    }
  });
}
