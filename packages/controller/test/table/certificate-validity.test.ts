import assert from 'node:assert/strict';
import { type TestContext, test } from 'node:test';
import type { SecretObject } from '@weir/model';
import { ManualClock } from '@weir/runtime';
import { CertificateValidityTracker } from '../../src/table/table-loop.ts';

const DAY = 86_400_000;
const START = Date.UTC(2026, 0, 1);

function secret(name: string, days: readonly [from: number, to: number]): SecretObject {
  const [notBefore, notAfter] = [START + days[0] * DAY, START + days[1] * DAY];
  const certificate = { kind: 'good', chain: '', keyDigest: '', sealedKey: '', notBefore, notAfter } as const;
  return { namespace: 'shop', name, certificate, authorities: null };
}

function startTracker(context: TestContext): {
  clock: ManualClock;
  validities: CertificateValidityTracker;
  changes: () => number;
} {
  let changes = 0;
  const clock = new ManualClock(START);
  const validities = new CertificateValidityTracker({
    clock,
    onValidityChange: () => {
      changes += 1;
    },
  });
  context.after(() => validities.close());
  return { clock, validities, changes: () => changes };
}

test('reports once that a certificate is about to expire, and once that it has expired', async (context) => {
  const { clock, validities, changes } = startTracker(context);
  const secrets = [secret('tls', [0, 90])];
  assert.deepEqual([...validities.validityOf(secrets)], []);
  await clock.advance(76 * DAY - 1);
  assert.equal(changes(), 0);
  await clock.advance(1);
  assert.equal(changes(), 1);
  assert.deepEqual([...validities.validityOf(secrets)], [['shop/tls', 'expiring']]);
  await clock.advance(14 * DAY + 1_000);
  assert.equal(changes(), 2);
  assert.deepEqual([...validities.validityOf(secrets)], [['shop/tls', 'expired']]);
  await clock.advance(400 * DAY);
  assert.equal(changes(), 2);
});

test('returns the same map until a validity changes', async (context) => {
  const { clock, validities } = startTracker(context);
  const first = [secret('old', [-90, 5]), secret('new', [0, 90])];
  const found = validities.validityOf(first);
  assert.deepEqual([...found], [['shop/old', 'expiring']]);
  await clock.advance(DAY);
  assert.equal(validities.validityOf(first), found);
  assert.equal(validities.validityOf([...first, secret('other', [0, 90])]), found);
  assert.deepEqual([...validities.validityOf(first.slice(1))], []);
});

test('reports nothing about a certificate that was renewed in time', async (context) => {
  const { clock, validities, changes } = startTracker(context);
  validities.validityOf([secret('tls', [0, 90])]);
  await clock.advance(60 * DAY);
  validities.validityOf([secret('tls', [60, 150])]);
  await clock.advance(75 * DAY);
  assert.equal(changes(), 0);
});

test('follows a wall clock that is set forward and back', async (context) => {
  const { clock, validities, changes } = startTracker(context);
  const secrets = [secret('tls', [0, 90])];
  validities.validityOf(secrets);
  clock.jumpWallClock(80 * DAY);
  await clock.advance(3_600_000);
  assert.equal(changes(), 1);
  assert.deepEqual([...validities.validityOf(secrets)], [['shop/tls', 'expiring']]);
  clock.jumpWallClock(-80 * DAY);
  assert.deepEqual([...validities.validityOf(secrets)], []);
});

test('reports nothing after close', async (context) => {
  const { clock, validities, changes } = startTracker(context);
  validities.validityOf([secret('tls', [0, 90])]);
  validities.close();
  assert.equal(clock.pendingTimers, 0);
  await clock.advance(100 * DAY);
  assert.equal(changes(), 0);
});
