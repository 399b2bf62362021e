// TLS that ends here: a Service with a certificate, its clients, and what reaches the endpoint.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { connectRaw, echoServer, eventually } from '@weir/testkit';
import { ACTIVE, RECEIVED, SENT } from '../../src/counters/columns.ts';
import { endingTls, TRUSTING } from '../fixtures/certificates.ts';
import { loneWorker } from '../fixtures/lone-worker.ts';
import { endpointOf, web } from '../fixtures/serving.ts';
import { TRANSPORTS } from '../fixtures/transports.ts';

for (const { name, transport } of TRANSPORTS) {
  for (const version of ['TLSv1.2', 'TLSv1.3'] as const) {
    test(`${name}: ${version} ends here, and the plaintext is what the endpoint gets and what is counted`, async () => {
      await using backend = await echoServer();
      using worker = await loneWorker(web([endpointOf(backend)], endingTls()), { transport });
      const tls = { ...TRUSTING, minVersion: version, maxVersion: version };
      await using client = await connectRaw({ ...worker, tls });
      await client.send('hello');
      assert.equal((await client.take(5)).toString(), 'hello');
      await client.end();
      assert.deepEqual(await client.ended, { kind: 'end' });
      await eventually(() => assert.deepEqual(worker.outcomes(), { completed: 1 }));
      assert.deepEqual([worker.row[RECEIVED], worker.row[SENT], worker.row[ACTIVE]], [5, 5, 0]);
      assert.deepEqual(worker.reported, []);
    });
  }
}
