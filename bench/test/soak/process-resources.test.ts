import assert from 'node:assert/strict';
import { join } from 'node:path';
import { describe, test } from 'node:test';
import { spawnProcess, temporaryDirectory } from '@weir/testkit';
import { collectGarbage, Inspector, inspectorUrlIn } from '../../src/measure/inspector.ts';
import { residentKiB } from '../../src/measure/proc-stats.ts';
import { parseMallocInfo, parseSmaps, readMallocBytes, residentKiBByKind } from '../../src/soak/process-resources.ts';

const blocks = 1_000;
const blockBytes = 4_000;

describe('memory of a process', () => {
  test('assigns each mapping to one kind', () => {
    const smaps = [
      mapping('00400000-04500000 r-xp', '/usr/bin/node', 60_000),
      mapping('08bb7000-0b03e000 rw-p', '[heap]', 31_000),
      mapping('7f5778000000-7f5797e00000 rwxp', '', 4_000),
      mapping('7f57a0000000-7f57a0100000 rw-p', '', 300), // V8: what follows reserves more than an arena does
      mapping('7f57a0100000-7f59a0000000 ---p', '', 0),
      mapping('7f59b4000000-7f59b54ce000 rw-p', '', 19_000), // an arena
      mapping('7f59b54ce000-7f59b8000000 ---p', '', 0),
      mapping('7f59b8057000-7f59b875b000 rw-p', '', 7_000),
      mapping('7f59b9000000-7f59b9001000 ---p', '', 0), // a guard, and a stack
      mapping('7f59b9001000-7f59b9801000 rw-p', '', 40),
      mapping('7ffd1c5a0000-7ffd1c5c2000 rw-p', '[stack]', 60),
    ].join('');
    assert.deepEqual(parseSmaps(smaps), {
      malloc: 31_000 + 19_000,
      'V8 and large buffers': 300 + 7_000,
      'machine code': 4_000,
      stacks: 100,
      files: 60_000,
    });
    assert.throws(() => parseSmaps('Rss: 1 kB\n'), /not \/proc/);
  });

  test('reads used and free memory of malloc', () => {
    const heap = '<heap nr="0">\n<total type="rest" count="1" size="7"/>\n<system type="current" size="9"/>\n</heap>\n';
    const sums = [
      '<total type="fast" count="2" size="100"/>',
      '<total type="rest" count="3" size="4000"/>',
      '<total type="mmap" count="1" size="70000"/>',
      '<system type="current" size="10000"/>',
      '<system type="max" size="20000"/>',
    ];
    const text = `<malloc version="1">\n${heap}${heap}${sums.join('\n')}\n</malloc>\n`;
    assert.deepEqual(parseMallocInfo(text), { used: 10_000 - 4_100 + 70_000, free: 4_100 });
    assert.throws(() => parseMallocInfo('<malloc version="1">'), /not what malloc_info writes/);
  });

  test('counts kept allocations as used, and freed allocations as free', async (t) => {
    const { path, close } = temporaryDirectory('soak-memory');
    t.after(close);
    await using child = await spawnProcess({
      command: process.execPath,
      args: ['--no-warnings', '--inspect=127.0.0.1:0', '--eval', 'setInterval(() => {}, 60_000)'],
      readyWhen: (output) => inspectorUrlIn(output) !== undefined,
    });
    const url = inspectorUrlIn(child.output()) ?? '';
    using inspector = await Inspector.connect(url);
    const read = async (): Promise<{ used: number; free: number }> => {
      await collectGarbage(url);
      return readMallocBytes(inspector, join(path, 'malloc.xml'));
    };
    // The expression evaluates to 0, because the inspector would keep the result in memory if it were an object.
    const evaluate = (statement: string): Promise<unknown> =>
      inspector.call('Runtime.evaluate', { expression: `${statement}; 0` });
    const before = await read();
    await evaluate(`globalThis.kept = Array.from({ length: ${blocks} }, () => Buffer.allocUnsafeSlow(${blockBytes}))`);
    const kept = await read();
    await evaluate('globalThis.kept = undefined');
    const after = await read();
    const least = (blocks * blockBytes * 9) / 10;
    assert.ok(kept.used - before.used > least, `${kept.used - before.used} bytes more are in use`);
    assert.ok(kept.used - after.used > least, `${kept.used - after.used} bytes less are in use`);
    assert.ok(after.free > 0);
    const kinds = residentKiBByKind(child.pid);
    const sum = Object.values(kinds).reduce((all, kib) => all + kib, 0);
    assert.ok(Math.abs(sum - residentKiB(child.pid)) < 2_048, `${sum} KiB in all`);
    assert.ok(kinds.malloc > 0 && kinds.files > 0 && kinds.stacks > 0 && kinds['machine code'] > 0);
  });
});

function mapping(range: string, name: string, kib: number): string {
  return `${range} 00000000 00:00 0          ${name}\nSize:  99 kB\nRss:    ${kib} kB\nPss:    1 kB\nVmFlags: rd\n`;
}
