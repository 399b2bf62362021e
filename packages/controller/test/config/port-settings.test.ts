// These tests start the real controller process with wrong port settings. It must exit and print one line that names the mistake.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { spawnProcess } from '@weir/testkit';
import { MAIN_PATH } from '../fixtures/controller-process.ts';

const WRONG: readonly (readonly [settings: Readonly<Record<string, string>>, line: RegExp])[] = [
  [
    { WEIR_RESERVED_PORTS: '9100,90-80' },
    /^.*WEIR_RESERVED_PORTS is "9100,90-80"; use a comma-separated list; each item: a port from 1 to 65535, or a range.*\n$/,
  ],
  [
    { WEIR_RESERVED_PORTS: '400-500', WEIR_SHARED_PORTS: '443' },
    /^.*WEIR_SHARED_PORTS and WEIR_RESERVED_PORTS both contain 443; list each port in only one of the two\n$/,
  ],
];

for (const [settings, line] of WRONG) {
  test(`the controller does not start with ${JSON.stringify(settings)}`, async () => {
    await using process = await spawnProcess({
      command: globalThis.process.execPath,
      args: ['--conditions=source', MAIN_PATH],
      env: { ...globalThis.process.env, WEIR_REDIS_URL: 'redis://127.0.0.1:1', ...settings },
      name: 'controller',
      mayExit: true,
    });
    assert.equal((await process.exited).code, 2);
    assert.match(process.output(), line);
  });
}
