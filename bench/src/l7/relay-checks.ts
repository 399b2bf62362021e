import assert from 'node:assert/strict';
import { once } from 'node:events';
import { connect } from 'node:http2';
import { connectClient, eventually } from '@weir/testkit';
import type { RelayCheck, RelayChecks } from '../comparison/measured-subject.ts';
import { exactTraffic, type TrafficBounds, trafficBetween } from '../measure/traffic-bounds.ts';
import { type BackendDocument, DOCUMENTS } from './backend.ts';
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
  http2: checkHttp2Response,
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

function checkHttp2Response(port: number, reportTraffic: Parameters<RelayCheck>[1]): Promise<void> {
  reportTraffic(UNKNOWN_TRAFFIC);
  return eventually(async () => {
    const session = connect(`http://127.0.0.1:${port}`);
    session.on('error', () => {}); // ignored, because the stream fails too
    try {
      const stream = session.request({ ':path': DOCUMENTS.small.path });
      const [headers] = await once(stream, 'response');
      const body = Buffer.concat(await stream.toArray()).toString('latin1');
      assert.deepEqual([headers[':status'], body], [200, DOCUMENTS.small.body]);
    } finally {
      session.destroy();
    }
  });
}
