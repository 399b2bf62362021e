import { connectClient, eventually } from '@weir/testkit';
import type { RelayCheck } from '../comparison/measured-subject.ts';
import { downloadBulk } from '../load/bulk-stream.ts';
import { datagramReportErrors, runDatagrams } from '../load/generators.ts';
import { exactTraffic } from '../measure/traffic-bounds.ts';
import type { BackendName } from '../subjects/subject.ts';
import { datagramTraffic } from './loads.ts';

const HTTP_REQUEST = 'GET / HTTP/1.1\r\nHost: probe\r\nConnection: close\r\n\r\n';
const ECHO_MESSAGE = 'an echo?';
const BULK_BYTES = 3_000_001;

export const RELAY_CHECKS: Readonly<Record<BackendName, RelayCheck>> = {
  http: (port, reportTraffic) =>
    eventually(async () => {
      const response = await exchange(port, HTTP_REQUEST);
      reportTraffic(exactTraffic({ receivedBytes: HTTP_REQUEST.length, sentBytes: response.length, connections: 1 }));
      if (!/^HTTP\/1\.1 200 .*bytes of response body\n$/s.test(response))
        throw new Error(`not the response of nginx: ${response}`);
    }),
  stream: (port, reportTraffic) =>
    eventually(async () => {
      const { requestBytes } = await downloadBulk(port, BULK_BYTES);
      reportTraffic(exactTraffic({ receivedBytes: requestBytes, sentBytes: BULK_BYTES, connections: 1 }));
    }),
  echo: (port, reportTraffic) =>
    eventually(async () => {
      const response = await exchange(port, ECHO_MESSAGE, { halfClose: true });
      reportTraffic(exactTraffic({ receivedBytes: ECHO_MESSAGE.length, sentBytes: response.length, connections: 1 }));
      if (response !== ECHO_MESSAGE) throw new Error(`not an echo: ${response}`);
    }),
  datagrams: (port, reportTraffic) =>
    eventually(async () => {
      const report = await runDatagrams({ port, seconds: 0, flows: 1 });
      reportTraffic(datagramTraffic(report, 1));
      const errors = datagramReportErrors(report);
      if (errors.length > 0) throw new Error(errors.join(', '));
    }),
};

async function exchange(port: number, text: string, { halfClose = false } = {}): Promise<string> {
  await using client = await connectClient({ port });
  await client.send(text);
  if (halfClose) await client.end();
  const ending = await client.ended;
  if (ending.kind !== 'end') throw new Error(`the connection ended with ${JSON.stringify(ending)}`);
  if (!halfClose) await client.end();
  return client.buffered.toString('latin1');
}
