import assert from 'node:assert/strict';
import { test } from 'node:test';
import { ManualClock, Sealer, Secret } from '@weir/runtime';
import { makeCertificate } from '@weir/testkit';
import { SecretWatches } from '../../../src/watch/kubernetes/secret-watches.ts';

const secret = new Secret('a secret of this fleet, long enough');
const certificate = makeCertificate({ name: 'a.example' });
const base64 = (text: string): string => Buffer.from(text).toString('base64');
const raw = (resourceVersion: string, uid = 'u') => ({
  metadata: { namespace: 'shop', name: 'tls', uid, resourceVersion },
  data: { 'tls.crt': base64(certificate.chain), 'tls.key': base64(certificate.key) },
});

function createSecretWatches() {
  const counter = { sealed: 0 };
  class CountingSealer extends Sealer {
    override seal(text: string, about: string): string {
      counter.sealed += 1;
      return super.seal(text, about);
    }
  }
  const readable = { access: { kind: 'cluster' }, sealer: new CountingSealer(secret) } as const;
  const hooks = { clock: new ManualClock(), onChange: () => undefined };
  return { counter, secrets: new SecretWatches(readable, hooks) };
}

test('parses a version of a Secret once, however often it is listed', () => {
  const { counter, secrets } = createSecretWatches();
  const [watch] = secrets.watches;
  assert.ok(watch);
  const list = (...objects: readonly ReturnType<typeof raw>[]): void => {
    watch.cache.listStarted();
    for (const each of objects) watch.cache.put(each);
    watch.cache.listCompleted();
  };
  list(raw('1'));
  const first = secrets.list();
  list(raw('1'));
  assert.equal(counter.sealed, 1);
  list(raw('2'));
  assert.equal(counter.sealed, 2);
  assert.equal(secrets.list(), first, 'an equal Secret leaves the list unchanged');
  list();
  assert.deepEqual(secrets.list(), []);
  list(raw('2'));
  assert.deepEqual(secrets.list(), first);
  assert.equal(counter.sealed, 3);
});
