import assert from 'node:assert/strict';
import { once } from 'node:events';
import { type AddressInfo, createServer } from 'node:net';
import { describe, test } from 'node:test';
import { probePort, probeTcp } from '../../../src/supervisor/listeners/port-probe.ts';

const ways = { 'on bare handles': probePort, 'on public net': probeTcp } as const;

for (const [how, ask] of Object.entries(ways)) {
  describe(`a port that is probed ${how}`, () => {
    for (const address of ['127.0.0.1', '::1']) {
      test(`of ${address} is taken while somebody listens there, and free when asked again after that`, async () => {
        const server = createServer();
        server.listen({ host: address, port: 0 });
        await once(server, 'listening');
        const { port } = server.address() as AddressInfo;
        assert.equal(await ask({ protocol: 'TCP', address, port }), 'EADDRINUSE');
        server.close();
        await once(server, 'close');
        assert.equal(await ask({ protocol: 'TCP', address, port }), undefined);
        assert.equal(await ask({ protocol: 'TCP', address, port }), undefined);
      });
    }

    test('of an address that this host does not have says so', async () => {
      assert.equal(await ask({ protocol: 'TCP', address: '192.0.2.1', port: 9 }), 'EADDRNOTAVAIL');
    });
  });
}
