import { connectRaw, eventually } from '@weir/testkit';
import { takeBulk } from '../load/bulk-sink.ts';
import { complaintsAboutDatagrams, runDatagrams } from '../load/datagrams.ts';
import { exactly, type Moved } from '../measure/moved.ts';
import type { BackendName } from '../subjects/subject.ts';
import { movedByDatagrams } from './datagram-load.ts';

/** Resolves when the port relays to its backend, and the answer was the backend's; what was moved is told as it is moved. */
type Proof = (port: number, tell: (moved: Moved) => void) => Promise<void>;

const request = 'GET / HTTP/1.1\r\nHost: probe\r\nConnection: close\r\n\r\n';
const message = 'an echo?';
const bulkBytes = 3_000_001;

export const proofs: Readonly<Record<BackendName, Proof>> = {
  answers: (port, tell) =>
    eventually(async () => {
      const answer = await ask(port, request);
      tell(exactly({ receivedBytes: request.length, sentBytes: answer.length, connections: 1 }));
      if (!/^HTTP\/1\.1 200 .*bytes for whoever asks\n$/s.test(answer))
        throw new Error(`not nginx's answer: ${answer}`);
    }),
  bulk: (port, tell) =>
    eventually(async () => {
      const { requestBytes } = await takeBulk(port, bulkBytes);
      tell(exactly({ receivedBytes: requestBytes, sentBytes: bulkBytes, connections: 1 }));
    }),
  echo: (port, tell) =>
    eventually(async () => {
      const answer = await ask(port, message, { halfClose: true });
      tell(exactly({ receivedBytes: message.length, sentBytes: answer.length, connections: 1 }));
      if (answer !== message) throw new Error(`not an echo: ${answer}`);
    }),
  datagrams: (port, tell) =>
    eventually(async () => {
      const report = await runDatagrams({ port, seconds: 0, flows: 1 });
      tell(movedByDatagrams(report, 1));
      const complaints = complaintsAboutDatagrams(report);
      if (complaints.length > 0) throw new Error(complaints.join(', '));
    }),
};

async function ask(port: number, text: string, { halfClose = false } = {}): Promise<string> {
  await using client = await connectRaw({ port });
  await client.send(text);
  if (halfClose) await client.end();
  const ending = await client.ended;
  if (ending.kind !== 'end') throw new Error(`a probe ended by ${JSON.stringify(ending)}`);
  if (!halfClose) await client.end();
  return client.buffered.toString('latin1');
}
