import { connectClient, eventually } from '@weir/testkit';
import { downloadBulk } from '../load/bulk-sink.ts';
import { datagramReportErrors, runDatagrams } from '../load/datagrams.ts';
import { exactTraffic, type TrafficBounds } from '../measure/moved.ts';
import type { BackendName } from '../subjects/subject.ts';
import { datagramTraffic } from './datagram-load.ts';

/** Resolves when the port relays to its backend, and the answer was the backend's; what was moved is told as it is moved. */
type RelayCheck = (port: number, tell: (moved: TrafficBounds) => void) => Promise<void>;

const HTTP_REQUEST = 'GET / HTTP/1.1\r\nHost: probe\r\nConnection: close\r\n\r\n';
const ECHO_MESSAGE = 'an echo?';
const BULK_BYTES = 3_000_001;

export const RELAY_CHECKS: Readonly<Record<BackendName, RelayCheck>> = {
  answers: (port, tell) =>
    eventually(async () => {
      const answer = await exchange(port, HTTP_REQUEST);
      tell(exactTraffic({ receivedBytes: HTTP_REQUEST.length, sentBytes: answer.length, connections: 1 }));
      if (!/^HTTP\/1\.1 200 .*bytes for whoever asks\n$/s.test(answer))
        throw new Error(`not nginx's answer: ${answer}`);
    }),
  bulk: (port, tell) =>
    eventually(async () => {
      const { requestBytes } = await downloadBulk(port, BULK_BYTES);
      tell(exactTraffic({ receivedBytes: requestBytes, sentBytes: BULK_BYTES, connections: 1 }));
    }),
  echo: (port, tell) =>
    eventually(async () => {
      const answer = await exchange(port, ECHO_MESSAGE, { halfClose: true });
      tell(exactTraffic({ receivedBytes: ECHO_MESSAGE.length, sentBytes: answer.length, connections: 1 }));
      if (answer !== ECHO_MESSAGE) throw new Error(`not an echo: ${answer}`);
    }),
  datagrams: (port, tell) =>
    eventually(async () => {
      const report = await runDatagrams({ port, seconds: 0, flows: 1 });
      tell(datagramTraffic(report, 1));
      const complaints = datagramReportErrors(report);
      if (complaints.length > 0) throw new Error(complaints.join(', '));
    }),
};

async function exchange(port: number, text: string, { halfClose = false } = {}): Promise<string> {
  await using client = await connectClient({ port });
  await client.send(text);
  if (halfClose) await client.end();
  const ending = await client.ended;
  if (ending.kind !== 'end') throw new Error(`a probe ended by ${JSON.stringify(ending)}`);
  if (!halfClose) await client.end();
  return client.buffered.toString('latin1');
}
