// Tests a proxy that has no right to bind low ports.
import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { eventually } from '@weir/testkit';
import { insideNamespace } from '@weir/tools';
import { webService } from '../fixtures/services.ts';
import { spawnProxy } from '../fixtures/spawned-proxy.ts';

const namespace = insideNamespace({ sysctls: { 'net/ipv4/ip_unprivileged_port_start': 1_024 } });
const NOBODY = 65_534;

describe('a port that this process may not bind', namespace, () => {
  for (const endpoints of [[], [{ address: '127.0.0.1', port: 1 }]]) {
    test(`is reported with a remedy, ${endpoints.length === 0 ? 'without' : 'with'} endpoints`, async () => {
      using proxy = await spawnProxy(webService(endpoints, { port: 80 }), { uid: NOBODY, gid: NOBODY });
      const [report] = await eventually(async () => {
        const { view } = await proxy.ask();
        assert.notEqual(view.listeners[0]?.error, null);
        return view.listeners;
      });
      assert.equal(report?.bound, false);
      assert.equal(
        report.error,
        `cannot listen on ${proxy.address}:80: permission denied (a port below 1024 needs ` +
          'CAP_NET_BIND_SERVICE); grant the capability to the proxy, or give the Service a port from 1024 on',
      );
    });
  }
});
