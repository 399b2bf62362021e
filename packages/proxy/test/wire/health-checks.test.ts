// Tests which endpoints clients reach when some endpoints do not work, with real sockets.
import assert from 'node:assert/strict';
import { request } from 'node:http';
import { text } from 'node:stream/consumers';
import { test } from 'node:test';
import type { HealthCheckSettings, UnhealthyEndpoint } from '@weir/model';
import { connectClient, eventually } from '@weir/testkit';
import type { RunningProxy } from '../../src/index.ts';
import { writeLocalProxyHeader } from '../../src/protocol/write-proxy-header.ts';
import { type Fleet, startFleet } from '../fixtures/fleet.ts';
import { type HttpEndpoint, httpEndpoint } from '../fixtures/http-endpoint.ts';
import { PORT } from '../fixtures/listen-address.ts';
import { scriptedEndpoint } from '../fixtures/scripted-endpoint.ts';
import { endpointOf, webService } from '../fixtures/services.ts';
import type { TestService } from '../fixtures/tables.ts';

/** Frequent checks with a long timeout, because the machine may be busy. */
const OFTEN = { intervalMs: 60, timeoutMs: 2_000, healthyThreshold: 1, unhealthyThreshold: 2 };
const TCP: HealthCheckSettings = { kind: 'tcp', ...OFTEN };
const HTTP: HealthCheckSettings = { kind: 'http', path: '/ready?deep=1', ...OFTEN };

function inTurn(healthCheck: HealthCheckSettings, ...endpoints: HttpEndpoint[]): TestService {
  return webService(
    endpoints.map(({ endpoint }) => endpoint),
    { settings: { algorithm: 'round-robin', healthCheck } },
  );
}

async function answerOf(fleet: Fleet): Promise<string> {
  const sent = request({ host: fleet.addressOf(), port: PORT, path: '/client', agent: false }).end();
  return new Promise((resolve, reject) => {
    sent.on('error', reject).on('response', (response) => text(response).then(resolve, reject));
  });
}

/** Returns the names that `count` successive clients receive, as one string. */
async function answersOf(fleet: Fleet, count: number): Promise<string> {
  let answers = '';
  for (let time = 0; time < count; time += 1) answers += await answerOf(fleet);
  return answers;
}

async function serving(fleet: Fleet, service: TestService, workers = 1): Promise<RunningProxy> {
  await fleet.serve(service);
  const proxy = await fleet.proxy({ workers });
  await proxy.ready;
  return proxy;
}

function unhealthyOf(proxy: RunningProxy, { endpoint }: HttpEndpoint): UnhealthyEndpoint | undefined {
  return proxy.view().unhealthy?.endpoints.find((each) => each.endpoint.port === endpoint.port);
}

const OFF: HealthCheckSettings = { kind: 'off' };

test('ejects an endpoint that refuses, without a failed client', async () => {
  await using fleet = await startFleet();
  await using a = await httpEndpoint('a');
  await using b = await httpEndpoint('b');
  const proxy = await serving(fleet, inTurn(OFF, a, b), 2);
  await b.stop();
  await eventually(async () => {
    assert.equal(await answersOf(fleet, 4), 'aaaa');
    assert.deepEqual(unhealthyOf(proxy, b)?.state, 'ejected');
  });
  const { why, used } = unhealthyOf(proxy, b) ?? {};
  assert.match(why ?? '', /^[0-9]+ connection attempts in a row failed$/);
  assert.equal(used, false);
  await b.listen();
  assert.equal(await answersOf(fleet, 6), 'aaaaaa');
});

test('uses an ejected endpoint if all others fail, and readmits it when it answers', async () => {
  await using fleet = await startFleet();
  await using a = await httpEndpoint('a');
  await using b = await httpEndpoint('b');
  const proxy = await serving(fleet, inTurn(OFF, a, b));
  await b.stop();
  await eventually(async () => {
    assert.equal(await answerOf(fleet), 'a');
    assert.ok(unhealthyOf(proxy, b));
  });
  await b.listen();
  await a.stop();
  assert.equal(await answerOf(fleet), 'b');
  await eventually(() => assert.equal(unhealthyOf(proxy, b), undefined));
});

test('forgets the failures of a removed endpoint, so that it serves at once when it returns', async () => {
  await using fleet = await startFleet();
  await using a = await httpEndpoint('a');
  await using b = await httpEndpoint('b');
  const proxy = await serving(fleet, inTurn(OFF, a, b));
  await b.stop();
  await eventually(async () => {
    assert.equal(await answerOf(fleet), 'a');
    assert.ok(unhealthyOf(proxy, b));
  });
  await b.listen();
  // Repeats the removal, because a worker may report an old failure after the endpoint has returned. Allows less than
  // ten seconds, because after that time an ejected endpoint would return anyway.
  await eventually(
    async () => {
      await fleet.serve(inTurn(OFF, a));
      await eventually(() => assert.equal(proxy.view().unhealthy, undefined));
      await fleet.serve(inTurn(OFF, a, b));
      assert.match(await answersOf(fleet, 40), /b/);
    },
    { timeoutMs: 5_000 },
  );
});

for (const healthCheck of [TCP, HTTP]) {
  test(`a ${healthCheck.kind} check excludes an endpoint that does not listen, without a client, and readmits it`, async () => {
    await using fleet = await startFleet();
    await using a = await httpEndpoint('a');
    await using b = await httpEndpoint('b');
    const proxy = await serving(fleet, inTurn(healthCheck, a, b));
    await b.stop();
    await eventually(() => assert.equal(unhealthyOf(proxy, b)?.state, 'failing'));
    assert.equal(unhealthyOf(proxy, b)?.why, `its ${healthCheck.kind} check fails: ECONNREFUSED`);
    assert.equal(await answersOf(fleet, 4), 'aaaa');
    await b.listen();
    await eventually(async () => assert.match(await answersOf(fleet, 20), /b/));
    assert.equal(proxy.view().unhealthy, undefined);
  });
}

test('an HTTP check fails on status 500, passes on 302, and requests path and address', async () => {
  await using fleet = await startFleet();
  await using a = await httpEndpoint('a');
  await using b = await httpEndpoint('b');
  const proxy = await serving(fleet, inTurn(HTTP, a, b));
  b.status = 500;
  await eventually(() => assert.equal(unhealthyOf(proxy, b)?.why, 'its http check fails: status 500'));
  await eventually(async () => assert.equal(await answersOf(fleet, 4), 'aaaa'));
  const { host, path } = b.requests.at(-1) ?? {};
  assert.deepEqual({ host, path }, { host: `127.0.0.1:${b.endpoint.port}`, path: '/ready?deep=1' });
  b.status = 302;
  await eventually(async () => assert.match(await answersOf(fleet, 20), /b/));
});

test('resets open connections to an endpoint that fails its check if the Service asks for it', async () => {
  await using fleet = await startFleet();
  await using a = await httpEndpoint('a');
  await using b = await httpEndpoint('b');
  const proxy = await serving(fleet, inTurn({ ...HTTP, drainTimeoutMs: 1 }, a, b));
  await using one = await connectClient({ host: fleet.addressOf(), port: PORT });
  await using other = await connectClient({ host: fleet.addressOf(), port: PORT });
  await eventually(() => assert.equal(proxy.view().services[0]?.active, 2));
  b.status = 500;
  assert.deepEqual(await Promise.race([one.ended, other.ended]), { kind: 'error', code: 'ECONNRESET' });
  await eventually(() => {
    const { outcomes, active } = proxy.view().services[0] ?? {};
    assert.deepEqual({ drained: outcomes?.drained, active }, { drained: 1, active: 1 });
  });
});

test('uses all endpoints when all fail their checks', async () => {
  await using fleet = await startFleet();
  await using a = await httpEndpoint('a');
  await using b = await httpEndpoint('b');
  const proxy = await serving(fleet, inTurn(HTTP, a, b));
  a.status = 503;
  b.status = 503;
  await eventually(() => assert.equal(proxy.view().unhealthy?.total, 2));
  assert.ok(proxy.view().unhealthy?.endpoints.every(({ used }) => used));
  await eventually(async () => assert.match([...(await answersOf(fleet, 4))].sort().join(''), /^aabb$/));
});

test('fails the check of an endpoint that never answers, and leaves no connection open', async () => {
  await using fleet = await startFleet();
  await using a = await httpEndpoint('a');
  await using b = await httpEndpoint('b');
  const proxy = await serving(fleet, inTurn({ ...HTTP, timeoutMs: 50 }, a, b));
  b.isSilent = true;
  await eventually(() => assert.equal(unhealthyOf(proxy, b)?.why, 'its http check fails: no answer within 50 ms'));
  await proxy.close({ drainMs: 0 });
  await eventually(() => assert.equal(b.open, 0));
});

test('runs one check for two workers', async () => {
  await using fleet = await startFleet();
  await using a = await httpEndpoint('a');
  const slow = { ...HTTP, intervalMs: 200 };
  const proxy = await serving(fleet, inTurn(slow, a), 2);
  const beganAt = performance.now();
  const before = a.requests.length;
  await eventually(() => assert.ok(a.requests.length >= before + 6));
  const intervals = (performance.now() - beganAt) / slow.intervalMs;
  assert.ok(a.requests.length - before <= intervals / 0.9 + 1, 'no more than one by one can be, with jitter');
  assert.equal(proxy.view().workers, 2);
});

for (const proxyProtocol of ['v1', 'v2'] as const) {
  test(`sends PROXY ${proxyProtocol} without client addresses to endpoints that expect it`, async () => {
    await using fleet = await startFleet();
    await using endpoint = await scriptedEndpoint();
    const settings = { healthCheck: { ...HTTP, intervalMs: 1_000, timeoutMs: 1_000 }, proxyProtocol };
    await serving(fleet, webService([endpointOf(endpoint)], { settings }));
    const side = await endpoint.next();
    const header = Buffer.from(writeLocalProxyHeader(proxyProtocol));
    const rest = 'GET /ready?deep=1 HTTP/1.1\r\n';
    assert.equal((await side.take(header.length + rest.length)).toString('latin1'), header.toString('latin1') + rest);
    await side.send('HTTP/1.1 204 No Content\r\n\r\n');
    await side.ended;
  });
}

test('metrics show endpoints by state, and the results of checks', async () => {
  await using fleet = await startFleet();
  await using a = await httpEndpoint('a');
  await using b = await httpEndpoint('b');
  await using leaving = await scriptedEndpoint();
  const before = inTurn(OFF, a, b);
  await fleet.serve({ ...before, endpoints: [...before.endpoints, endpointOf(leaving)] });
  const proxy = await fleet.proxy({ workers: 2, admin: { host: '127.0.0.1', port: 0 } });
  await proxy.ready;
  const lines = async (): Promise<string[]> => {
    const { host, port } = proxy.adminAddress ?? assert.fail('no admin');
    return (await (await fetch(`http://${host}:${port}/metrics`)).text()).split('\n');
  };
  const endpoints = (state: string, count: number): string =>
    `weir_service_endpoints{namespace="shop",service="web",state="${state}"} ${count}`;
  await using stack = new AsyncDisposableStack();
  for (let client = 0; client < 6; client += 1) {
    stack.use(await connectClient({ host: fleet.addressOf(), port: PORT }));
  }
  await leaving.next();
  await eventually(async () => assert.ok((await lines()).includes(endpoints('draining', 0))));
  b.status = 404;
  await fleet.serve(inTurn(HTTP, a, b));
  await eventually(async () => {
    const now = await lines();
    for (const line of [endpoints('ready', 1), endpoints('ejected', 1), endpoints('draining', 1)]) {
      assert.ok(
        now.includes(line),
        `${line} is not in\n${now.filter((each) => each.includes('endpoints')).join('\n')}`,
      );
    }
    for (const result of ['good', 'bad']) {
      const line = now.find((each) => each.startsWith(`weir_health_checks_total{result="${result}"} `));
      assert.ok(Number(line?.split(' ')[1]) > 0, `${line}`);
    }
    assert.ok(now.some((each) => /^weir_health_checks_stretched_total \d+$/.test(each)));
  });
});

test('the heartbeat lists unhealthy endpoints', async () => {
  await using fleet = await startFleet();
  await using a = await httpEndpoint('a');
  await using b = await httpEndpoint('b');
  await serving(fleet, inTurn(HTTP, a, b));
  b.status = 500;
  await eventually(async () => {
    const [heartbeat] = await fleet.heartbeats();
    assert.deepEqual(heartbeat?.unhealthy, {
      total: 1,
      endpoints: [
        {
          service: 'uid-shop-web',
          protocol: 'TCP',
          port: PORT,
          endpoint: b.endpoint,
          state: 'failing',
          why: 'its http check fails: status 500',
          used: false,
        },
      ],
    });
  });
});
