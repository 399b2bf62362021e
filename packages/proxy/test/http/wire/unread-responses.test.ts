// A client that sends requests and does not read the answers must not make the proxy keep the answers in memory.
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { Agent, get } from 'node:http';
import { connect, type Socket } from 'node:net';
import { test } from 'node:test';
import { echoServer } from '@weir/testkit';
import { type Fleet, startFleet } from '../../fixtures/fleet.ts';
import { PORT } from '../../fixtures/listen-address.ts';
import { endpointOf, startServing, webService } from '../../fixtures/services.ts';

/** All requests, and all answers, are together larger than the buffers of the kernel. */
const REQUEST_BYTES = 1_000;
const PARTS = 200;
const REQUESTS_PER_PART = 50;
/** A client has stopped if the proxy takes none of its parts while another client gets this many answers. */
const QUIET_ANSWERS = 20;
/** A request that the proxy answers by itself. */
const REQUEST = 'GET / HTTP/1.1\r\nHost: shop.example\r\nX-Padding: '.padEnd(REQUEST_BYTES - 4, 'x').concat('\r\n\r\n');

test('reads pipelined requests only as fast as the client reads the answers', async () => {
  await using fleet = await startFleet();
  await using endpoint = await echoServer();
  await startServing(
    fleet,
    webService([endpointOf(endpoint)], { settings: { httpPorts: [PORT], pathPrefix: '/shop' } }),
  );
  const client = connect({ host: fleet.addressOf(), port: PORT, noDelay: true });
  client.pause();
  let parts = 0;
  for (let part = 0; part < PARTS; part += 1) {
    client.write(REQUEST.repeat(REQUESTS_PER_PART), () => {
      parts += 1;
    });
  }
  await untilQuiet(fleet, () => parts);
  assert.ok(parts > 0 && parts < PARTS, `the proxy has taken ${parts} of ${PARTS} parts`);
  assert.equal(await countAnswers(client), PARTS * REQUESTS_PER_PART);
  client.destroy();
});

/** Resolves when the count is positive and no longer changes. */
async function untilQuiet(fleet: Fleet, count: () => number): Promise<void> {
  const agent = new Agent({ keepAlive: true, maxSockets: 1 });
  for (let before = -1; before !== count() || before === 0; ) {
    before = count();
    for (let answers = 0; answers < QUIET_ANSWERS; answers += 1) {
      const asked = get({ host: fleet.addressOf(), port: PORT, headers: { host: 'shop.example' }, agent });
      const [response] = await once(asked, 'response');
      await once(response.resume(), 'end');
    }
  }
  agent.destroy();
}

/** Reads the answers to all requests, and returns their number. */
async function countAnswers(client: Socket): Promise<number> {
  let answers = 0;
  let rest = '';
  for await (const part of client.setEncoding('latin1')) {
    const lines = (rest + part).split('HTTP/1.1 404');
    rest = (lines.at(-1) as string).slice(-11);
    answers += lines.length - 1;
    if (answers === PARTS * REQUESTS_PER_PART) break;
  }
  return answers;
}
