import assert from 'node:assert/strict';
import { once } from 'node:events';
import { type AddressInfo, createServer } from 'node:net';
import { describe, test } from 'node:test';
import { portProbeFor } from '../../../src/supervisor/listeners/port-probe.ts';
import { TRANSPORT_KINDS } from '../../../src/transport/choose-transport.ts';

for (const transport of TRANSPORT_KINDS) {
  const probe = portProbeFor(transport);
  describe(`the probe for ${transport}`, () => {
    for (const address of ['127.0.0.1', '::1']) {
      test(`reports a port of ${address} as taken while a server listens, and as free after that`, async () => {
        const server = createServer();
        server.listen({ host: address, port: 0 });
        await once(server, 'listening');
        const { port } = server.address() as AddressInfo;
        assert.equal(await probe({ protocol: 'TCP', address, port }), 'EADDRINUSE');
        server.close();
        await once(server, 'close');
        assert.equal(await probe({ protocol: 'TCP', address, port }), undefined);
        assert.equal(await probe({ protocol: 'TCP', address, port }), undefined);
      });
    }

    test('reports an address that this host does not have', async () => {
      assert.equal(await probe({ protocol: 'TCP', address: '192.0.2.1', port: 9 }), 'EADDRNOTAVAIL');
    });
  });
}
