import assert from 'node:assert/strict';
import { type TestContext, test } from 'node:test';
import type { SecretObject } from '@weir/model';
import { ManualClock } from '@weir/runtime';
import { CertificateValidityTracker } from '../../src/table/certificate-validity.ts';

const DAY = 86_400_000;
const START = Date.UTC(2026, 0, 1);

function secret(name: string, days: readonly [from: number, to: number]): SecretObject {
  const [notBefore, notAfter] = [START + days[0] * DAY, START + days[1] * DAY];
  const certificate = { kind: 'good', chain: '', keyDigest: '', sealedKey: '', notBefore, notAfter } as const;
  return { namespace: 'shop', name, certificate, authorities: null };
}

function started(context: TestContext): {
  clock: ManualClock;
  validities: CertificateValidityTracker;
  turns: () => number;
} {
  let turns = 0;
  const clock = new ManualClock(START);
  const validities = new CertificateValidityTracker({
    clock,
    onValidityChange: () => {
      turns += 1;
    },
  });
  context.after(() => validities.close());
  return { clock, validities, turns: () => turns };
}

test('it tells when a certificate is to be renewed and when it ends, each once, months ahead', async (context) => {
  const { clock, validities, turns } = started(context);
  const secrets = [secret('tls', [0, 90])];
  assert.deepEqual([...validities.validityOf(secrets)], []);
  await clock.advance(76 * DAY - 1);
  assert.equal(turns(), 0);
  await clock.advance(1);
  assert.equal(turns(), 1);
  assert.deepEqual([...validities.validityOf(secrets)], [['shop/tls', 'expiring']]);
  await clock.advance(14 * DAY + 1_000);
  assert.equal(turns(), 2);
  assert.deepEqual([...validities.validityOf(secrets)], [['shop/tls', 'expired']]);
  await clock.advance(400 * DAY);
  assert.equal(turns(), 2);
});

test('the same map comes back until it says something else', async (context) => {
  const { clock, validities } = started(context);
  const first = [secret('old', [-90, 5]), secret('new', [0, 90])];
  const found = validities.validityOf(first);
  assert.deepEqual([...found], [['shop/old', 'expiring']]);
  await clock.advance(DAY);
  assert.equal(validities.validityOf(first), found);
  assert.equal(validities.validityOf([...first, secret('other', [0, 90])]), found);
  assert.deepEqual([...validities.validityOf(first.slice(1))], []);
});

test('one that was renewed in time is not told of', async (context) => {
  const { clock, validities, turns } = started(context);
  validities.validityOf([secret('tls', [0, 90])]);
  await clock.advance(60 * DAY);
  validities.validityOf([secret('tls', [60, 150])]);
  await clock.advance(75 * DAY);
  assert.equal(turns(), 0);
});

test('a clock that is set is followed, forwards and back', async (context) => {
  const { clock, validities, turns } = started(context);
  const secrets = [secret('tls', [0, 90])];
  validities.validityOf(secrets);
  clock.jumpWallClock(80 * DAY);
  await clock.advance(3_600_000);
  assert.equal(turns(), 1);
  assert.deepEqual([...validities.validityOf(secrets)], [['shop/tls', 'expiring']]);
  clock.jumpWallClock(-80 * DAY);
  assert.deepEqual([...validities.validityOf(secrets)], []);
});

test('after closing nobody is told', async (context) => {
  const { clock, validities, turns } = started(context);
  validities.validityOf([secret('tls', [0, 90])]);
  validities.close();
  assert.equal(clock.pendingTimers, 0);
  await clock.advance(100 * DAY);
  assert.equal(turns(), 0);
});
