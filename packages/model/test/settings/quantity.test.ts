import assert from 'node:assert/strict';
import { test } from 'node:test';
import { parseQuantity } from '@weir/model';

test('parses quantities exactly', () => {
  const whole: Record<string, number> = {
    '0': 0,
    '10Ti': 10 * 2 ** 40,
    '1.5Gi': 1_610_612_736,
    '0.5Ki': 512,
    '500G': 500_000_000_000,
    '12E-1E1': Number.NaN,
    '2e9': 2_000_000_000,
    '1500m': Number.NaN,
    '2000m': 2,
    '.5k': 500,
    '5.': 5,
    '8191Pi': Number.NaN,
    '7Pi': 7 * 2 ** 50,
    '9007199254740991': Number.MAX_SAFE_INTEGER,
  };
  for (const [text, value] of Object.entries(whole)) {
    const parsed = parseQuantity(text);
    if (Number.isNaN(value)) assert.notEqual(parsed.kind, 'whole', text);
    else assert.deepEqual(parsed, { kind: 'whole', value }, text);
  }
});

test('distinguishes quantities that are not exact from malformed text', () => {
  assert.equal(parseQuantity('1500m').kind, 'fraction');
  assert.equal(parseQuantity('8Pi').kind, 'too-large');
  assert.equal(parseQuantity('1e999').kind, 'too-large');
  for (const text of ['', '.', '-1', 'ten', '10 Ti', '10TiB', '10ti', '0x10', '1e', 'Ki', '1e3Ki']) {
    assert.equal(parseQuantity(text).kind, 'malformed', text);
  }
});
