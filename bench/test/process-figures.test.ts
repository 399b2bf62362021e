import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { inspectorIn } from '../src/measure/collect-garbage.ts';
import { crowdFor, descriptorLimit, parseLimits } from '../src/measure/descriptors.ts';
import { parseRollup, residentKiB } from '../src/measure/resident-memory.ts';

describe('what is read of a process', () => {
  test('its memory is the sum over its mappings', () => {
    const text =
      '55d0-7ffe ---p 00000000 00:00 0    [rollup]\nRss:               17708 kB\nPss:                1234 kB\n';
    assert.equal(parseRollup(text), 17_708);
    assert.throws(() => parseRollup('Pss: 1 kB\n'), /not \/proc/);
    assert.ok(residentKiB(process.pid) > 10_000);
  });

  test('its limit of descriptors is the hard one', () => {
    const line = (hard: string): string =>
      `Max processes  10  20  processes\nMax open files            1024      ${hard}    files\n`;
    assert.equal(parseLimits(line('20000')), 20_000);
    assert.equal(parseLimits(line('unlimited')), Number.POSITIVE_INFINITY);
    assert.throws(() => parseLimits('Max processes 1 2\n'), /not \/proc/);
    assert.ok(descriptorLimit() > 0);
  });

  test('an idle crowd takes two descriptors of the proxy for each, and is never above 10,000', () => {
    assert.equal(crowdFor(20_000), 7_200);
    assert.equal(crowdFor(Number.POSITIVE_INFINITY), 10_000);
  });

  test('its inspector is where it says', () => {
    const said = 'Debugger listening on ws://127.0.0.1:9229/0a-1\nFor help, see: https://nodejs.org\nready\n';
    assert.equal(inspectorIn(said), 'ws://127.0.0.1:9229/0a-1');
    assert.equal(inspectorIn('ready\n'), undefined);
  });
});
