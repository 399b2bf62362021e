import assert from 'node:assert/strict';
import { test } from 'node:test';
import { ClientSketch, MAX_TOP_CLIENTS, mergeTopClients, NO_TOP_CLIENTS, type TopClients } from '@weir/model';
import fc from 'fast-check';

type Amounts = readonly (readonly [client: string, amount: number])[];

/** Few clients with large amounts among many with small amounts, in any order. */
const AMOUNTS: fc.Arbitrary<Amounts> = fc.array(
  fc
    .oneof(
      fc.tuple(fc.integer({ min: 0, max: 5 }), fc.integer({ min: 0, max: 1_000 })),
      fc.tuple(fc.integer({ min: 6, max: 400 }), fc.integer({ min: 0, max: 20 })),
    )
    .map(([client, amount]) => [`10.0.${client >> 8}.${client & 255}`, amount] as const),
  // Without a size, fast-check makes lists of at most 10 items, and a sketch never replaces a client.
  { maxLength: 600, size: 'max' },
);
/** Bounds the time to shrink a counterexample. */
const PARAMETERS = { interruptAfterTimeLimit: 5_000 };
const PARTS = fc.array(AMOUNTS, { minLength: 1, maxLength: 6 });

function sketchOf(amounts: Amounts): TopClients {
  const sketch = new ClientSketch();
  for (const [client, amount] of amounts) sketch.add(client, amount);
  return sketch.result;
}

function assertBounds({ total, unlistedAtMost, clients }: TopClients, amounts: Amounts): void {
  const truth = new Map<string, number>();
  for (const [client, amount] of amounts) truth.set(client, (truth.get(client) ?? 0) + amount);
  assert.equal(
    total,
    amounts.reduce((sum, [, amount]) => sum + amount, 0),
  );
  assert.ok(clients.length <= MAX_TOP_CLIENTS);
  assert.ok(unlistedAtMost <= total / MAX_TOP_CLIENTS);
  for (const { client, estimate, error } of clients) {
    const amount = truth.get(client) ?? 0;
    assert.ok(amount <= estimate && estimate - error <= amount, `${client}: ${amount} of ${estimate} - ${error}`);
    assert.ok(error >= 0 && error <= total / MAX_TOP_CLIENTS, `error ${error} of ${total}`);
    truth.delete(client);
  }
  for (const amount of truth.values()) assert.ok(amount <= unlistedAtMost, `${amount} is not listed`);
}

test('each amount is within the bounds of its estimate, and each client with more than 1 % is listed', () => {
  fc.assert(
    fc.property(AMOUNTS, (amounts) => assertBounds(sketchOf(amounts), amounts)),
    PARAMETERS,
  );
});

test('a merge keeps the bounds, in any grouping', () => {
  fc.assert(
    fc.property(PARTS, PARTS, (first, second) => {
      const merged = mergeTopClients([first, second].map((parts) => mergeTopClients(parts.map(sketchOf))));
      assertBounds(merged, [...first, ...second].flat());
    }),
    PARAMETERS,
  );
});

test('is exact for at most 100 clients', () => {
  const amounts = Array.from({ length: MAX_TOP_CLIENTS }, (_, index) => [`c${index}`, index] as const);
  const { clients, unlistedAtMost, total } = mergeTopClients([sketchOf(amounts), sketchOf(amounts), NO_TOP_CLIENTS]);
  assert.deepEqual([unlistedAtMost, total, clients.length], [0, 9_900, MAX_TOP_CLIENTS]);
  assert.deepEqual(clients.slice(0, 2), [
    { client: 'c99', estimate: 198, error: 0 },
    { client: 'c98', estimate: 196, error: 0 },
  ]);
});
