import { connect } from 'node:net';
import { PAGE_BYTES } from './backends.ts';
import { roundRobin, type Traffic, type TrafficTarget } from './traffic.ts';

const VISIT_INTERVAL_MS = 40;
const VISIT_TIMEOUT_MS = 5_000;
const REQUEST = 'GET / HTTP/1.1\r\nHost: shop.example\r\nConnection: close\r\n\r\n';

/** Customers: 25 a second, each fetches one page on a connection of its own and checks that it came whole. */
export function startShopTraffic({ addresses, port }: TrafficTarget): Traffic {
  const address = roundRobin(addresses);
  const open = new Set<Promise<void>>();
  const failures: string[] = [];
  let sentBytes = 0;
  let receivedBytes = 0;
  let connections = 0;

  const timer = setInterval(() => {
    const visit = fetchPage({ host: address(), port })
      .then((page) => {
        connections += 1;
        sentBytes += page.sentBytes;
        receivedBytes += page.receivedBytes;
      })
      .catch((error: Error) => void failures.push(error.message))
      .finally(() => open.delete(visit));
    open.add(visit);
  }, VISIT_INTERVAL_MS);

  return {
    count: () => ({ sentBytes, receivedBytes, connections, failures }),
    async stop() {
      clearInterval(timer);
      await Promise.all(open);
    },
  };
}

interface PageTransfer {
  readonly sentBytes: number;
  readonly receivedBytes: number;
}

function fetchPage(where: { readonly host: string; readonly port: number }): Promise<PageTransfer> {
  const { promise, resolve, reject } = Promise.withResolvers<PageTransfer>();
  const socket = connect({ ...where, noDelay: true });
  const chunks: Buffer[] = [];
  socket.setTimeout(VISIT_TIMEOUT_MS, () => socket.destroy(new Error('no answer in time')));
  socket.on('data', (chunk: Buffer) => chunks.push(chunk));
  socket.on('error', reject);
  socket.on('close', () => {
    const answer = Buffer.concat(chunks);
    const isWhole = answer.subarray(0, 12).toString() === 'HTTP/1.1 200' && bodyBytes(answer) === PAGE_BYTES;
    if (isWhole) resolve({ sentBytes: socket.bytesWritten, receivedBytes: socket.bytesRead });
    else reject(new Error(`the shop answered ${answer.length} bytes, which is not its page`));
  });
  socket.write(REQUEST);
  return promise;
}

function bodyBytes(answer: Buffer): number {
  const head = answer.indexOf('\r\n\r\n');
  return head === -1 ? 0 : answer.length - head - 4;
}
