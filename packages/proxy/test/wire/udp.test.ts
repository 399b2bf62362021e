// Tests UDP in one worker: what clients and endpoints receive, and what is counted.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Endpoint } from '@weir/model';
import { eventually } from '@weir/testkit';
import { ACTIVE, CONNECTIONS, RECEIVED, SENT } from '../../src/metering/counters.ts';
import { PORT } from '../fixtures/listen-address.ts';
import type { TestService } from '../fixtures/tables.ts';
import { UDP_TRANSPORTS } from '../fixtures/transports.ts';
import { type UdpEndpoint, udpClient, udpEcho, udpEndpoint } from '../fixtures/udp-sockets.ts';
import { startWorkerInTest, type WorkerInTest, type WorkerInTestOptions } from '../fixtures/worker-in-test.ts';

const SERVICE = { kind: 'service', namespace: 'shop', service: 'voice' } as const;

for (const [name, udpTransport] of Object.entries(UDP_TRANSPORTS)) {
  const voice = (endpoints: readonly UdpEndpoint[], over: Partial<TestService> = {}): TestService =>
    service(
      endpoints.map(({ endpoint }) => endpoint),
      over,
    );
  const serve = (served: TestService, options: WorkerInTestOptions = {}): Promise<WorkerInTest> =>
    startWorkerInTest(served, { udpTransport, ...options });

  test(`${name}: each client receives its own replies from the address that it sent to, and all bytes are counted`, async () => {
    await using echo = await udpEcho('re: ');
    using worker = await serve(voice([echo]));
    await using first = await udpClient(worker);
    await using second = await udpClient(worker);
    for (let round = 0; round < 10; round += 1) {
      assert.deepEqual(await Promise.all([first.ask(`first ${round}`), second.ask(`second ${round}`)]), [
        `re: first ${round}`,
        `re: second ${round}`,
      ]);
    }
    assert.equal(echo.peers.length, 2);
    await counted(worker, { received: 10 * (7 + 8), sent: 10 * (11 + 12), flows: 2, active: 2 });
    assert.deepEqual(worker.outcomes(), {});
  });

  for (const [from, to] of [
    ['::1', '::1'],
    ['127.0.0.1', '::1'],
    ['::1', '127.0.0.1'],
  ] as const) {
    test(`${name}: clients of ${from} reach endpoints of ${to}`, async () => {
      await using echo = await udpEcho('re: ', { host: to });
      await using free = await udpEndpoint({ host: from });
      const { port } = free.endpoint;
      await free[Symbol.asyncDispose]();
      using worker = await serve(voice([echo], { port }), { host: from, port });
      await using client = await udpClient(worker);
      assert.equal(await client.ask('hello'), 're: hello');
    });
  }

  test(`${name}: relays datagrams of no bytes and of the maximum size, and counts their bytes`, async () => {
    await using echo = await udpEcho();
    using worker = await serve(voice([echo]));
    await using client = await udpClient(worker);
    const largest = Buffer.alloc(65_507, 7);
    for (const datagram of [Buffer.alloc(0), largest, Buffer.alloc(0)]) {
      await client.send(datagram);
      assert.deepEqual(await client.take(), datagram);
    }
    await counted(worker, { received: 65_507, sent: 65_507, flows: 1, active: 1 });
  });

  test(`${name}: relays a burst that fits into the buffers without loss`, async () => {
    await using echo = await udpEcho();
    using worker = await serve(voice([echo]));
    await using client = await udpClient(worker);
    for (let index = 0; index < 100; index += 1) await client.send(`${index}`);
    const answers = new Set<string>();
    for (let index = 0; index < 100; index += 1) answers.add((await client.take()).toString());
    assert.equal(answers.size, 100);
    await counted(worker, { received: 190, sent: 190, flows: 1, active: 1 });
  });

  test(`${name}: ends a flow after its idle timeout, and not before`, async () => {
    await using echo = await udpEcho();
    using worker = await serve(voice([echo], { settings: { udpIdleTimeoutMs: 3_000 } }));
    await using busy = await udpClient(worker);
    await using idle = await udpClient(worker);
    await busy.ask('1');
    await idle.ask('1');
    for (let second = 0; second < 6; second += 1) {
      worker.tick(1);
      await busy.ask('2');
    }
    assert.deepEqual(worker.outcomes(), { 'idle-timeout': 1 });
    assert.equal(worker.row[ACTIVE], 1);
    assert.equal(await idle.ask('again'), 'again');
    assert.equal(echo.peers.length, 3);
  });

  test(`${name}: sends the next datagram of a client to another endpoint when its endpoint is removed`, async () => {
    await using one = await udpEcho('one: ');
    await using two = await udpEcho('two: ');
    using worker = await serve(voice([one, two]));
    await using client = await udpClient(worker);
    const before = await client.ask('x');
    const [left, stays] = before.startsWith('one') ? [one, two] : [two, one];
    worker.serve(voice([stays]));
    assert.equal(await client.ask('x'), stays === one ? 'one: x' : 'two: x');
    assert.equal(left.received, 1);
    await counted(worker, { received: 2, sent: 12, flows: 1, active: 1 });
  });

  test(`${name}: a change of endpoints moves no flow whose endpoint stays`, async () => {
    await using one = await udpEcho('one');
    await using two = await udpEcho('two');
    using worker = await serve(voice([one]));
    await using client = await udpClient(worker);
    await client.ask('');
    worker.serve(voice([one, two]));
    for (let round = 0; round < 10; round += 1) assert.equal(await client.ask(''), 'one');
    assert.deepEqual([one.peers.length, two.received], [1, 0]);
  });

  test(`${name}: moves a flow from an endpoint that refuses, without losing the first datagram`, async () => {
    await using echo = await udpEcho();
    const refusing = await goneEndpoint();
    using worker = await serve(service([refusing, echo.endpoint]));
    for (let round = 0; round < 10; round += 1) {
      await using client = await udpClient(worker);
      assert.equal(await client.ask(`round ${round}`), `round ${round}`);
    }
    assert.equal(echo.peers.length, 10);
    assert.deepEqual(worker.outcomes(), {});
  });

  test(`${name}: ends a flow whose endpoints all refuse, and tries again with the next datagram`, async () => {
    const refusing = await goneEndpoint();
    using worker = await serve(service([refusing]));
    await using client = await udpClient(worker);
    await client.send('anybody?');
    await eventually(() => assert.deepEqual(worker.outcomes(), { 'connect-failed': 1 }));
    assert.equal(worker.row[ACTIVE], 0);
    await using _echo = await udpEcho('', { port: refusing.port });
    assert.equal(await client.ask('and now?'), 'and now?');
  });

  test(`${name}: moves a flow from an endpoint that closes its port during the flow`, async () => {
    await using one = await udpEcho();
    await using two = await udpEcho();
    using worker = await serve(voice([one, two]));
    await using client = await udpClient(worker);
    await client.ask('x');
    const [left, other] = one.received === 1 ? [one, two] : [two, one];
    await left[Symbol.asyncDispose]();
    // A datagram to the closed port is lost, as UDP permits, so the client sends until the other endpoint answers.
    await eventually(async () => {
      await client.send('y');
      assert.ok(other.received > 0);
    });
    assert.equal((await client.take()).toString(), 'y');
  });

  test(`${name}: a connected client is refused by the kernel at a closed listener`, async () => {
    await using echo = await udpEcho();
    using worker = await serve(voice([echo]));
    await using client = await udpClient(worker);
    await client.ask('x');
    worker.apply({ kind: 'close-listener', listener: worker.listener });
    await client.send('y');
    await assert.rejects(client.take(), { code: 'ECONNREFUSED' });
    assert.deepEqual(worker.outcomes(), { 'listener-closed': 1 });
    assert.equal(worker.row[ACTIVE], 0);
  });

  test(`${name}: a suspension stops both directions at once`, async () => {
    await using endpoint = await udpEndpoint();
    using worker = await serve(voice([endpoint]));
    await using client = await udpClient(worker);
    await client.send('x');
    const { reply } = await endpoint.next();
    worker.apply({ kind: 'suspensions', suspensions: [cutoff], now: 1 });
    await client.send('y');
    await eventually(() => assert.deepEqual(worker.outcomes(), { 'cut-off': 2 }));
    await reply('late');
    await counted(worker, { received: 1, sent: 0, flows: 1, active: 0 });
    worker.apply({ kind: 'suspensions', suspensions: [], now: 2 });
    await client.send('z');
    const again = await endpoint.next();
    assert.equal(again.bytes.toString(), 'z');
    await again.reply('reply');
    assert.equal((await client.take()).toString(), 'reply');
  });

  test(`${name}: ignores clients outside the source ranges`, async () => {
    await using echo = await udpEcho();
    using worker = await serve(voice([echo], { settings: { sourceRanges: ['127.0.0.8/32'] } }));
    await using outsider = await udpClient({ ...worker, localAddress: '127.0.0.9' });
    await using friend = await udpClient({ ...worker, localAddress: '127.0.0.8' });
    await outsider.send('let me in');
    assert.equal(await friend.ask('hi'), 'hi');
    await eventually(() => assert.deepEqual(worker.outcomes(), { 'source-range': 1 }));
    await counted(worker, { received: 2, sent: 2, flows: 1, active: 1 });
  });

  test(`${name}: a listener given to another Service keeps its clients, on the new Service’s counters`, async () => {
    await using one = await udpEcho('one');
    await using two = await udpEcho('two');
    using worker = await serve(voice([one]));
    await using client = await udpClient(worker);
    assert.equal(await client.ask(''), 'one');
    worker.serve(voice([two], { name: 'successor' }));
    assert.equal(await client.ask(''), 'two');
    assert.equal(worker.outcomes()['listener-closed'], 1);
  });

  test(`${name}: every worker chooses the same endpoint for a client’s address and port`, async () => {
    const names = ['a', 'b', 'c'];
    const endpoints = await Promise.all(names.map((each) => udpEcho(each)));
    await using _all = { [Symbol.asyncDispose]: async () => void (await Promise.all(endpoints.map(stop))) };
    using first = await serve(voice(endpoints));
    using second = await serve(voice(endpoints));
    const met = new Set<string>();
    for (let round = 0; round < 30; round += 1) {
      await using client = await udpClient({ ...first, localAddress: '127.0.0.1' });
      const endpointName = await client.ask('');
      const { port } = client;
      await client[Symbol.asyncDispose]();
      await using same = await udpClient({ ...second, localAddress: '127.0.0.1', localPort: port });
      assert.equal(await same.ask(''), endpointName);
      await same[Symbol.asyncDispose]();
      met.add(endpointName);
    }
    assert.deepEqual([...met].sort(), names);
  });
}

function service(endpoints: readonly Endpoint[], over: Partial<TestService> = {}): TestService {
  return { name: 'voice', protocol: 'UDP', port: PORT, endpoints, ...over };
}

const cutoff = {
  uid: 'abuse',
  name: 'abuse',
  target: SERVICE,
  message: '',
  until: null,
  reason: 'SuspendedByOperator',
  origin: { kind: 'store' },
  createdAt: null,
} as const;

interface Account {
  readonly received: number;
  readonly sent: number;
  readonly flows: number;
  readonly active: number;
}

async function counted({ row }: WorkerInTest, account: Account): Promise<void> {
  await eventually(() =>
    assert.deepEqual(
      { received: row[RECEIVED], sent: row[SENT], flows: row[CONNECTIONS], active: row[ACTIVE] },
      account,
    ),
  );
}

/** Returns an endpoint whose port is closed. */
async function goneEndpoint(): Promise<Endpoint> {
  await using endpoint = await udpEndpoint();
  return endpoint.endpoint;
}

async function stop(endpoint: UdpEndpoint): Promise<void> {
  await endpoint[Symbol.asyncDispose]();
}
