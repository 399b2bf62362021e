import assert from 'node:assert/strict';
import { once } from 'node:events';
import { existsSync, mkdtempSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { get, type IncomingMessage } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { json } from 'node:stream/consumers';
import { type TestContext, test } from 'node:test';
import { createProbeSocket, Health, silentLogger, UsageError } from '../../src/index.ts';

const signal = new AbortController().signal;

function directory(t: TestContext): string {
  const path = mkdtempSync(join(tmpdir(), 'weir-probe-'));
  t.after(() => rmSync(path, { recursive: true }));
  return path;
}

async function ask(socketPath: string, path: string): Promise<{ status: number | undefined; body: unknown }> {
  const [response] = (await once(get({ socketPath, path, agent: false }), 'response')) as [IncomingMessage];
  return { status: response.statusCode, body: await json(response) };
}

test('serves only the probes, with reasons, on a socket with mode 0600', async (t) => {
  const path = join(directory(t), 'probe.sock');
  const health = new Health();
  const probes = createProbeSocket({ path, health, log: silentLogger() });
  await probes.start(signal);
  assert.equal(statSync(path).mode & 0o777, 0o600);
  assert.deepEqual(await ask(path, '/readyz'), { status: 200, body: { ready: true, reasons: [] } });
  health.add('proxy', 'ready', () => 'no routing table yet');
  const reasons = [{ check: 'proxy', affects: 'ready', reason: 'no routing table yet' }];
  assert.deepEqual(await ask(path, '/readyz'), { status: 503, body: { ready: false, reasons } });
  assert.deepEqual(await ask(path, '/metrics'), {
    status: 404,
    body: { error: 'unknown path /metrics', paths: ['/healthz', '/readyz'] },
  });
  await probes.close();
  assert.ok(!existsSync(path));
});

test('replaces a stale socket, and keeps the socket of a successor on close', async (t) => {
  const path = join(directory(t), 'probe.sock');
  writeFileSync(path, '');
  const health = new Health();
  const first = createProbeSocket({ path, health, log: silentLogger() });
  await first.start(signal);
  const second = createProbeSocket({ path, health, log: silentLogger() });
  await second.start(signal);
  await first.close();
  assert.equal((await ask(path, '/healthz')).status, 200);
  await second.close();
});

test('throws a usage error for a path where no socket can be created', async (t) => {
  const startAt = (path: string): Promise<void> | void =>
    createProbeSocket({ path, health: new Health(), log: silentLogger() }).start(signal);
  const missing = join(directory(t), 'missing', 'probe.sock');
  await assert.rejects(
    async () => startAt(missing),
    (error) => error instanceof UsageError && /missing/.test(String(error.cause)),
  );
  await assert.rejects(
    async () => startAt(join(directory(t), 'x'.repeat(90))),
    (error) => /at most 90 bytes/.test(String((error as Error).cause)),
  );
});
