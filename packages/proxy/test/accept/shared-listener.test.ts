import assert from 'node:assert/strict';
import { once } from 'node:events';
import { test } from 'node:test';
import { diff } from '@weir/model';
import { eventually } from '@weir/testkit';
import { ACTIVE } from '../../src/metering/counters.ts';
import { webService } from '../fixtures/services.ts';
import { type TestService, tableFor } from '../fixtures/tables.ts';
import { tlsClient, tlsEcho } from '../fixtures/tls-echo.ts';
import { startWorkerInTest } from '../fixtures/worker-in-test.ts';

for (const first of ['alone', 'shared'] as const) {
  test(`keeps connections when a Service’s listener changes from ${first} to ${first === 'alone' ? 'shared' : 'alone'}`, async () => {
    await using backend = await tlsEcho();
    const settings = { tlsPassthrough: true, hosts: ['shop.example'], drainTimeoutMs: 1_000 };
    const before = webService([backend.endpoint], { settings, shared: first === 'shared' });
    const after: TestService = { ...before, shared: first === 'alone' };
    using worker = await startWorkerInTest(before);
    const client = tlsClient(worker, 'shop.example');
    await once(client, 'secureConnect');
    const nodes = { a: worker.host };
    worker.apply({ kind: 'table', changes: diff(tableFor(nodes, [before]), tableFor(nodes, [after])), slots: [] });
    worker.tick(10);
    client.write('hello');
    const [echoed] = (await once(client, 'data')) as [Buffer];
    assert.equal(echoed.toString(), 'hello');
    const second = tlsClient(worker, 'shop.example');
    await once(second, 'secureConnect');
    for (const each of [client, second]) each.destroy();
    await eventually(() => assert.equal(worker.row[ACTIVE], 0));
    assert.deepEqual(worker.reported, []);
  });
}
