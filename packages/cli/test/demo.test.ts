import assert from 'node:assert/strict';
import { test } from 'node:test';
import { occupyPort } from './fixtures/occupied-port.ts';
import { runWeirProcess } from './fixtures/weir-process.ts';

/** Loopback addresses that no other test, and no demo of a person on this machine, uses. */
const network = `127.${100 + (process.pid % 100)}.${Math.floor(process.pid / 100) % 256}`;

test('one round of the demo: everything is as it says', async () => {
  const { code, stdout, output } = await runWeirProcess(['demo', '--once', '--network', network]);
  assert.equal(code, 0, output);
  assert.match(output, /^\nWeir: three tenants/, 'nothing that looks like a failure goes before');
  assert.equal(output, stdout);
  assert.doesNotMatch(stdout, /^ +NOT /m);
  assert.match(stdout, new RegExp(`ok +shop/web is served at two nodes: ${network}\\.31, ${network}\\.32`));
  assert.match(stdout, /ok +shop\/web-preview is refused, with the reason: QuotaExceeded: 1 of 1/);
  assert.match(stdout, /ok +the uploader takes more than the others together/);
  assert.match(stdout, /ok +its 4 open connections are reset in less than a second/);
  assert.match(stdout, /ok +the shop did not notice/);
  assert.match(stdout, /ok +shop: equal to the byte/);
  assert.match(stdout, /Everything was as it said\.\n$/);
});

test('an address of the demo that is taken is one line that says what to do', async () => {
  await using _taken = await occupyPort({ host: `${network}.43`, port: 17_778 });
  const { code, output } = await runWeirProcess(['demo', '--once', '--network', network]);
  assert.equal(code, 2);
  assert.match(
    output,
    /^weir: a backend of the demo cannot listen on 127\.\d+\.\d+\.43:17778: .*--network 127\.0\.5\n$/,
  );
});
