import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { after, before, suite, test } from 'node:test';
import { promisify } from 'node:util';
import { programPath, requireProgram } from '@weir/tools';
import { startStaticServer } from './static-server.ts';

suite('h2spec', requireProgram('h2spec'), () => {
  let server: Awaited<ReturnType<typeof startStaticServer>>;
  before(async () => {
    server = await startStaticServer();
  });
  after(() => server.server.close());

  test('passes whole, also its strict cases', async (context) => {
    const args = ['--strict', '--host', '127.0.0.1', '--port', String(server.port)];
    // h2spec exits with 1 if a case has failed; the error then contains its report.
    const { stdout } = await promisify(execFile)(programPath('h2spec'), args);
    const summary = /^(\d+) tests, (\d+) passed, (\d+) skipped, (\d+) failed$/m.exec(stdout);
    context.diagnostic(summary?.[0] ?? stdout);
    assert.deepEqual(summary?.slice(2), [summary?.[1], '0', '0']);
  });
});
