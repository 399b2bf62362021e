// Tests TLS termination in a complete proxy: next to Services with passthrough, and under limits, suspensions and
// drains.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { createLogger, type Logger, Secret } from '@weir/runtime';
import { type ConnectionEnd, connectClient, echoServer, eventually, type TestClient } from '@weir/testkit';
import { FLEET_SECRET, TRUSTING_CLIENT, terminatingTls } from '../fixtures/certificates.ts';
import { type Fleet, startFleet } from '../fixtures/fleet.ts';
import { PORT } from '../fixtures/listen-address.ts';
import { NET_WORKER } from '../fixtures/net-worker.ts';
import { receiveProxyHeader, scriptedEndpoint } from '../fixtures/scripted-endpoint.ts';
import { endpointOf, outcomesFor, webService } from '../fixtures/services.ts';
import { tlsClient, tlsEcho } from '../fixtures/tls-echo.ts';
import { captureNodeClientHello } from '../protocol/client-hello-bytes.ts';
import { readTlvs } from '../protocol/proxy-header-tlvs.ts';

const at = (fleet: Fleet, servername = 'web.example', node = 'a'): Promise<TestClient> =>
  connectClient({ host: fleet.addressOf(node), port: PORT, tls: { ...TRUSTING_CLIENT, servername } });

async function echoes(client: TestClient): Promise<void> {
  await client.send('hello');
  assert.equal((await client.take(5)).toString(), 'hello');
}

/** Returns what a client sees when it is refused: an error code, or the way in which the connection ended. */
async function refusal(fleet: Fleet, servername?: string, node?: string): Promise<string> {
  try {
    await using client = await at(fleet, servername, node);
    const { kind } = await client.ended;
    return kind;
  } catch (error) {
    return (error as NodeJS.ErrnoException).code ?? String(error);
  }
}

for (const workerEntry of [undefined, NET_WORKER]) {
  const on = workerEntry === undefined ? 'system calls' : 'public net';

  test(`${on}: terminates TLS and passes it through on one shared port, and counts decrypted bytes exactly`, async () => {
    await using fleet = await startFleet({ workerEntry });
    await using echo = await echoServer();
    await using passed = await tlsEcho();
    const hosts = ['web.example', '*.web.example'];
    const here = { ...webService([endpointOf(echo)], terminatingTls({ settings: { hosts } })), shared: true };
    const there = {
      ...webService([passed.endpoint], { name: 'game', settings: { tlsPassthrough: true, hosts: ['game.example'] } }),
      shared: true,
    };
    await fleet.serve(here, there);
    const proxy = await fleet.proxy({ fleetSecret: FLEET_SECRET, workers: 2 });
    await proxy.ready;
    const gamer = tlsClient({ host: fleet.addressOf(), port: PORT }, 'game.example');
    await new Promise((resolve) => gamer.once('secureConnect', resolve));
    let bytes = 0;
    for (let round = 0; round < 20; round += 1) {
      await using client = await at(fleet, round % 2 === 0 ? 'web.example' : 'eu.web.example');
      await client.send('x'.repeat(1 + round * 777));
      await client.end();
      assert.deepEqual(await client.ended, { kind: 'end' });
      assert.equal(client.received, 1 + round * 777);
      bytes += client.received;
    }
    assert.match(await refusal(fleet, 'other.example'), /UNRECOGNIZED_NAME/);
    await eventually(() => assert.deepEqual(outcomesFor(proxy), { completed: 20 }));
    gamer.destroy();
    await proxy.close();
    const { web: counted } = await fleet.usage();
    assert.deepEqual(counted, { receivedBytes: bytes, sentBytes: bytes, connections: 20, requests: 0 });
    assert.deepEqual(passed.names, ['game.example']);
  });

  test(`${on}: a suspension ends handshakes and sessions, and a drain ends both in time`, async () => {
    await using fleet = await startFleet({ workerEntry });
    await using echo = await echoServer();
    await fleet.serve(webService([endpointOf(echo)], terminatingTls()));
    const proxy = await fleet.proxy({ fleetSecret: FLEET_SECRET });
    await proxy.ready;
    await using served = await at(fleet);
    await echoes(served);
    await using meeting = await connectClient({ host: fleet.addressOf(), port: PORT });
    await meeting.send(await captureNodeClientHello(TRUSTING_CLIENT));
    await meeting.take(5);
    await fleet.cutOff({ kind: 'tenant', tenant: 'shop' }, 'all');
    const ends: ConnectionEnd[] = await Promise.all([served.ended, meeting.ended]);
    assert.deepEqual(
      ends.map(({ kind }) => kind),
      ['error', 'error'],
    );
    await eventually(() => assert.deepEqual(outcomesFor(proxy), { 'cut-off': 2 }));
    await fleet.store.suspensions.remove('all');
    await eventually(async () => {
      await using again = await at(fleet);
      await echoes(again);
    });
    await using last = await at(fleet);
    await echoes(last);
    await using silent = await connectClient({ host: fleet.addressOf(), port: PORT });
    await silent.send(await captureNodeClientHello(TRUSTING_CLIENT));
    await silent.take(5);
    await proxy.close({ drainMs: 50 });
    assert.equal((await last.ended).kind, 'error');
    assert.equal((await silent.ended).kind, 'error');
    assert.equal(outcomesFor(proxy)?.drained, 2);
  });

  test(`${on}: a handshake counts towards the limits until it ends`, async () => {
    await using fleet = await startFleet({ workerEntry });
    await using echo = await echoServer();
    fleet.limit('shop', { connections: 1 });
    await fleet.serve(webService([endpointOf(echo)], terminatingTls()));
    const proxy = await fleet.proxy({ fleetSecret: FLEET_SECRET });
    await proxy.ready;
    await using meeting = await connectClient({ host: fleet.addressOf(), port: PORT });
    await meeting.send(await captureNodeClientHello(TRUSTING_CLIENT));
    await meeting.take(5);
    assert.equal(await refusal(fleet), 'ECONNRESET');
    meeting.reset();
    await eventually(async () => {
      await using client = await at(fleet);
      await echoes(client);
      await client.end();
      await client.ended;
    });
    await eventually(async () => {
      await using client = await at(fleet);
      await echoes(client);
    });
  });

  test(`${on}: sends the client and its TLS parameters to the endpoint by PROXY v2`, async () => {
    await using fleet = await startFleet({ workerEntry });
    await using backend = await scriptedEndpoint();
    await fleet.serve(
      webService([endpointOf(backend)], terminatingTls({ alpn: ['http/1.1'], settings: { proxyProtocol: 'v2' } })),
    );
    const proxy = await fleet.proxy({ fleetSecret: FLEET_SECRET });
    await proxy.ready;
    const tls = { ...TRUSTING_CLIENT, ALPNProtocols: ['h2', 'http/1.1'] };
    await using client = await connectClient({ host: fleet.addressOf(), port: PORT, localAddress: '127.0.0.9', tls });
    const header = await receiveProxyHeader(await backend.next());
    assert.equal(header.addresses?.source.address, '127.0.0.9');
    assert.equal(header.addresses?.source.port, client.localPort);
    const tlvs = readTlvs(header.bytes);
    assert.equal(tlvs.get(1)?.toString(), 'http/1.1');
    assert.equal(tlvs.get(2)?.toString(), 'web.example');
    assert.deepEqual(tlvs.get(0x20), Buffer.concat([Buffer.of(1, 0, 0, 0, 1, 0x21, 0, 7), Buffer.from('TLSv1.3')]));
  });
}

test('a proxy that cannot decrypt a key does not confirm the port, says why, and logs nothing secret', async () => {
  await using fleet = await startFleet({ nodes: ['a', 'b'] });
  await using echo = await echoServer();
  await fleet.serve(
    webService([endpointOf(echo)], terminatingTls()),
    webService([endpointOf(echo)], { name: 'plain', port: 9_000 }),
  );
  const [none, other] = [logged(), logged()];
  const without = await fleet.proxy({ log: none.log, workers: 2 });
  const another = new Secret('the secret of another fleet, as long');
  const mismatched = await fleet.proxy({ node: 'b', log: other.log, fleetSecret: another, workers: 2 });
  await Promise.all([without.ready, mismatched.ready]);
  for (let round = 0; round < 10; round += 1) {
    for (const node of ['a', 'b']) assert.match(await refusal(fleet, 'web.example', node), /INTERNAL_ERROR/);
  }
  await using plain = await connectClient({ host: fleet.addressOf(), port: 9_000 });
  await echoes(plain);
  for (const proxy of [without, mismatched]) {
    await eventually(() => assert.deepEqual(outcomesFor(proxy), { 'no-certificate': 10 }));
  }
  const listenersOf = (proxy: typeof without) => proxy.view().listeners.map(({ bound, error }) => ({ bound, error }));
  const boundListener = { bound: true, error: null };
  const why = (words: string) => ({
    bound: false,
    error: `TLS cannot be terminated: ${words}; ask the operator`,
  });
  assert.deepEqual(listenersOf(without), [boundListener, why('this proxy has no WEIR_FLEET_SECRET')]);
  assert.deepEqual(listenersOf(mismatched), [
    boundListener,
    why('this proxy and the controller have different values of WEIR_FLEET_SECRET'),
  ]);
  assert.equal(none.lines.filter((line) => line.includes('WEIR_FLEET_SECRET')).length, 1);
  const logLines = other.lines.filter((line) => line.includes('certificate cannot be used'));
  assert.equal(logLines.length, 1);
  assert.match(String(logLines), /"shop\/web".*WEIR_FLEET_SECRET/);
  for (const line of [...none.lines, ...other.lines]) {
    assert.equal(line.includes(another.reveal()) || line.includes('PRIVATE') || line.includes('CERTIFICATE-'), false);
  }
});

function logged(): { readonly log: Logger; readonly lines: string[] } {
  const lines: string[] = [];
  const destination = { write: (line: string) => void lines.push(line) };
  return { log: createLogger({ name: 'proxy', level: 'debug', destination }), lines };
}
