import assert from 'node:assert/strict';
import { test } from 'node:test';
import { connectClient, echoServer } from '@weir/testkit';
import { startFleet } from '../fixtures/fleet.ts';
import { PORT } from '../fixtures/listen-address.ts';
import { endpointOf, webService } from '../fixtures/services.ts';

const CONNECTIONS = 400;
const AT_ONCE = 50;
/**
 * The maximum distance from an even spread, in standard deviations. By chance, the count of a worker exceeds this
 * distance less than once in 10 million runs.
 */
const BAND = 5.5;

for (const workers of [2, 4]) {
  test(`connections are spread evenly over ${workers} workers, and metrics show each worker's count`, async () => {
    await using fleet = await startFleet();
    await using backend = await echoServer();
    await fleet.serve(webService([endpointOf(backend)]));
    const proxy = await fleet.proxy({ workers });
    await proxy.ready;
    for (let begun = 0; begun < CONNECTIONS; begun += AT_ONCE) {
      await Promise.all(
        Array.from({ length: AT_ONCE }, async () => {
          await using client = await connectClient({ host: fleet.addressOf(), port: PORT });
          await client.send('x');
          await client.take(1);
        }),
      );
    }
    const counts = proxy.view().threads.map(({ connections }) => connections);
    assert.equal(
      counts.reduce((sum, count) => sum + count, 0),
      CONNECTIONS,
    );
    const share = 1 / workers;
    const deviation = Math.sqrt(CONNECTIONS * share * (1 - share));
    for (const count of counts) {
      assert.ok(Math.abs(count - CONNECTIONS * share) < BAND * deviation, `${counts} of ${CONNECTIONS}`);
    }
  });
}
