import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { inspectorUrlIn } from '../src/measure/collect-garbage.ts';
import { descriptorLimit, maxIdleConnections, parseDescriptorLimit } from '../src/measure/descriptors.ts';
import { parseSmapsRollup, residentKiB } from '../src/measure/resident-memory.ts';

describe('what is read of a process', () => {
  test('its memory is the sum over its mappings', () => {
    const text =
      '55d0-7ffe ---p 00000000 00:00 0    [rollup]\nRss:               17708 kB\nPss:                1234 kB\n';
    assert.equal(parseSmapsRollup(text), 17_708);
    assert.throws(() => parseSmapsRollup('Pss: 1 kB\n'), /not \/proc/);
    assert.ok(residentKiB(process.pid) > 10_000);
  });

  test('its limit of descriptors is the hard one', () => {
    const line = (hard: string): string =>
      `Max processes  10  20  processes\nMax open files            1024      ${hard}    files\n`;
    assert.equal(parseDescriptorLimit(line('20000')), 20_000);
    assert.equal(parseDescriptorLimit(line('unlimited')), Number.POSITIVE_INFINITY);
    assert.throws(() => parseDescriptorLimit('Max processes 1 2\n'), /not \/proc/);
    assert.ok(descriptorLimit() > 0);
  });

  test('an idle crowd takes two descriptors of the proxy for each, and is never above 10,000', () => {
    assert.equal(maxIdleConnections(20_000), 7_200);
    assert.equal(maxIdleConnections(Number.POSITIVE_INFINITY), 10_000);
  });

  test('its inspector is where it says', () => {
    const said = 'Debugger listening on ws://127.0.0.1:9229/0a-1\nFor help, see: https://nodejs.org\nready\n';
    assert.equal(inspectorUrlIn(said), 'ws://127.0.0.1:9229/0a-1');
    assert.equal(inspectorUrlIn('ready\n'), undefined);
  });
});
