import { once } from 'node:events';
import { Agent, type IncomingMessage, request } from 'node:http';
import { connect } from 'node:net';
import { FAILED_ORDER_STATUS, PAGE_BYTES } from './backends.ts';
import { NO_FAILURES, roundRobin, type Traffic, type TrafficTarget } from './traffic.ts';

/** The host that the Services of the shop share. */
const SHOP_HOST = 'shop.example';

const VISIT_INTERVAL_MS = 40;
const VISIT_TIMEOUT_MS = 5_000;
/** Every fifth customer places an order. */
const VISITS_PER_ORDER = 5;
const ORDER_PATH = '/api/orders';

interface Transfer {
  readonly sentBytes: number;
  readonly receivedBytes: number;
  readonly statuses: readonly number[];
}

/**
 * Starts 25 customers per second, each on a new connection. Most customers fetch two pages on the same connection and
 * check that the pages are complete. The others place an order, for which the shop fails now and then.
 */
export function startShopTraffic({ addresses, port }: TrafficTarget): Traffic {
  const address = roundRobin(addresses);
  const open = new Set<Promise<void>>();
  let failures = NO_FAILURES;
  let sentBytes = 0;
  let receivedBytes = 0;
  let connections = 0;
  let requests = 0;
  let serverErrors = 0;
  let visits = 0;

  const timer = setInterval(() => {
    visits += 1;
    const paths = visits % VISITS_PER_ORDER === 0 ? [ORDER_PATH] : ['/', '/offers'];
    const visit = visitShop({ host: address(), port }, paths)
      .then((transfer) => {
        connections += 1;
        sentBytes += transfer.sentBytes;
        receivedBytes += transfer.receivedBytes;
        requests += transfer.statuses.length;
        serverErrors += transfer.statuses.filter((status) => status >= 500).length;
      })
      .catch((error: Error) => {
        failures = { count: failures.count + 1, last: error.message };
      })
      .finally(() => open.delete(visit));
    open.add(visit);
  }, VISIT_INTERVAL_MS);

  return {
    count: () => ({ sentBytes, receivedBytes, connections, requests, serverErrors, failures }),
    async stop() {
      clearInterval(timer);
      await Promise.all(open);
    },
  };
}

interface Address {
  readonly host: string;
  readonly port: number;
}

/** Requests the paths one after the other on one connection, which the last request closes. */
async function visitShop(address: Address, paths: readonly string[]): Promise<Transfer> {
  const agent = new Agent({ keepAlive: true, maxSockets: 1 });
  const socket = connect({ ...address, noDelay: true });
  agent.createConnection = () => socket;
  socket.setTimeout(VISIT_TIMEOUT_MS, () => socket.destroy(new Error('the shop did not respond in time')));
  const closed = new Promise<void>((resolve) => socket.once('close', () => resolve()));
  const statuses: number[] = [];
  try {
    for (const [index, path] of paths.entries())
      statuses.push(await fetchPage(agent, path, { isLast: index === paths.length - 1 }));
    await closed;
  } finally {
    socket.destroy();
  }
  return { sentBytes: socket.bytesWritten, receivedBytes: socket.bytesRead, statuses };
}

/** Resolves with the status of a complete answer. Rejects for every answer that the shop does not give. */
async function fetchPage(agent: Agent, path: string, { isLast }: { readonly isLast: boolean }): Promise<number> {
  const isOrder = path === ORDER_PATH;
  const headers = { host: SHOP_HOST, connection: isLast ? 'close' : 'keep-alive' };
  const sent = request({ agent, path, method: isOrder ? 'POST' : 'GET', headers });
  sent.end();
  const [response] = (await once(sent, 'response')) as [IncomingMessage];
  let bodyBytes = 0;
  for await (const chunk of response) bodyBytes += (chunk as Buffer).length;
  const status = response.statusCode ?? 0;
  const isExpected = isOrder ? status === 201 || status === FAILED_ORDER_STATUS : status === 200;
  if (!isExpected || (!isOrder && bodyBytes !== PAGE_BYTES))
    throw new Error(`the shop answered ${path} with the status ${status} and ${bodyBytes} bytes`);
  return status;
}
