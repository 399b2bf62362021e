import assert from 'node:assert/strict';
import { once } from 'node:events';
import { createServer } from 'node:net';
import { test } from 'node:test';
import { runWeirProcess } from './fixtures/weir-process.ts';

/** Loopback addresses that differ from those of other tests and of a demo that a person runs on this machine. */
const network = `127.${100 + (process.pid % 100)}.${Math.floor(process.pid / 100) % 256}`;

test('passes every check in one round of the demo', async () => {
  const { code, stdout, output } = await runWeirProcess(['demo', '--once', '--network', network]);
  assert.equal(code, 0, output);
  assert.match(output, /^\nWeir: three tenants/, 'no message that looks like a failure comes first');
  assert.equal(output, stdout);
  assert.doesNotMatch(stdout, /^ +FAILED /m);
  assert.match(stdout, new RegExp(`ok +shop/web is served on two nodes: ${network}\\.31, ${network}\\.32`));
  assert.match(stdout, /ok +shop\/web-preview is refused with a reason: QuotaExceeded: 2 of 2/);
  assert.match(stdout, /ok +requests for one host reach two Services of the shop by path/);
  assert.match(stdout, /ok +the uploader uses more bandwidth than shop and game together/);
  assert.match(stdout, /ok +the 4 open connections of the uploader are reset in less than a second/);
  assert.match(stdout, /ok +shop is not affected/);
  assert.match(stdout, /ok +shop: every request of the whole demo got the answer of its server/);
  assert.match(stdout, /ok +shop: the usage equals the clients' own counts exactly: .* [1-9]\d* requests; clients/);
  assert.match(stdout, /All checks passed\.\n$/);
});

test('prints the fix if an address of the demo is in use', async () => {
  await using occupied = createServer();
  occupied.listen({ host: `${network}.43`, port: 17_778 });
  await once(occupied, 'listening');
  const { code, output } = await runWeirProcess(['demo', '--once', '--network', network]);
  assert.equal(code, 2);
  assert.match(
    output,
    /^weir: a backend of the demo cannot listen on 127\.\d+\.\d+\.43:17778: .*--network 127\.0\.5\n$/,
  );
});
