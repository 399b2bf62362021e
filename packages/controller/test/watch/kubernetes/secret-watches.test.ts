import assert from 'node:assert/strict';
import { test } from 'node:test';
import { ManualClock, Sealer, Secret } from '@weir/runtime';
import { makeCertificate } from '@weir/testkit';
import { SecretWatches } from '../../../src/watch/kubernetes/secret-watches.ts';

const secret = new Secret('a secret of this fleet, long enough');
const made = makeCertificate({ name: 'a.example' });
const base64 = (text: string): string => Buffer.from(text).toString('base64');
const raw = (resourceVersion: string, uid = 'u') => ({
  metadata: { namespace: 'shop', name: 'tls', uid, resourceVersion },
  data: { 'tls.crt': base64(made.chain), 'tls.key': base64(made.key) },
});

function watches() {
  const world = { sealed: 0 };
  class CountingSealer extends Sealer {
    override seal(text: string, about: string): string {
      world.sealed += 1;
      return super.seal(text, about);
    }
  }
  const readable = { access: { kind: 'cluster' }, sealer: new CountingSealer(secret) } as const;
  const hooks = { clock: new ManualClock(), onChange: () => undefined };
  return { world, secrets: new SecretWatches(readable, hooks) };
}

test('a version of a Secret is read once, however often it is listed', () => {
  const { world, secrets } = watches();
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
  assert.equal(world.sealed, 1);
  list(raw('2'));
  assert.equal(world.sealed, 2);
  assert.equal(secrets.list(), first, 'and one that says the same is no other');
  list();
  assert.deepEqual(secrets.list(), []);
  list(raw('2'));
  assert.deepEqual(secrets.list(), first);
  assert.equal(world.sealed, 3);
});
