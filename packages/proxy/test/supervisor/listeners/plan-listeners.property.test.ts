import assert from 'node:assert/strict';
import { test } from 'node:test';
import {
  createMatcher,
  type ListenerKey,
  listenerKeyOfRoute,
  type Matcher,
  type Suspension,
  suspensionFor,
} from '@weir/model';
import fc from 'fast-check';
import {
  type ListenerStatus,
  type ListenerStep,
  planListeners,
} from '../../../src/supervisor/listeners/plan-listeners.ts';
import { type TestService, tableFor } from '../../fixtures/tables.ts';

const ADDRESS = '127.0.0.1';
const NOW = 1_000_000;
const PORTS = [80, 81, 82, 83];
/** A port whose listener may be shared by two Services. */
const SHARED = 84;
const keyOf = (port: number): ListenerKey => `${port % 2 === 0 ? 'TCP' : 'UDP'}/${ADDRESS}/${port}`;

const service = (port: number): fc.Arbitrary<TestService> =>
  fc.record({
    name: fc.constant(`s${port}`),
    namespace: fc.constantFrom('shop', 'games'),
    port: fc.constant(port),
    protocol: fc.constant(port % 2 === 0 ? 'TCP' : 'UDP'),
    endpoints: fc.constantFrom([], [{ address: '10.0.0.1', port: 1 }]),
    settings: fc.constantFrom({}, { httpPorts: [port] }),
  });
const sharers = fc
  .tuple(service(SHARED), service(SHARED))
  .map((both) => both.map((each, index): TestService => ({ ...each, name: `s${SHARED}-${index}`, shared: true })))
  .chain((both) => fc.subarray(both));
const owners = fc.subarray(PORTS).chain((ports) => fc.tuple(...ports.map(service)) as fc.Arbitrary<TestService[]>);
const services = fc.tuple(owners, sharers).map((parts) => parts.flat());
const present = fc
  .dictionary(
    fc.constantFrom(...PORTS.map(keyOf), keyOf(SHARED), keyOf(99)),
    fc.oneof(
      fc.record({ kind: fc.constantFrom('open' as const, 'allocated' as const, 'busy' as const) }),
      fc.record({ kind: fc.constant('failed' as const), retryAt: fc.constantFrom(NOW - 1, NOW, NOW + 1) }),
    ),
    { noNullPrototype: true },
  )
  .map((states) => new Map<ListenerKey, ListenerStatus>(Object.entries(states)));
const suspensions = fc.subarray(['shop', 'games']).map((namespaces) => namespaces.map(suspensionOf));
const arbitraryInput = fc.record({ services, present, suspensions });

test('plans for each listener the step to its wanted state, and no other step', () => {
  fc.assert(
    fc.property(arbitraryInput, (input) => {
      const matcher = matcherOf(input.services);
      const steps = planListeners({ ...input, matcher, now: NOW, monotonic: NOW });
      const after = new Map(steps.map((step) => [step.key, step.kind]));
      for (const key of new Set([...[...matcher.routes.keys()].map(listenerKeyOfRoute), ...input.present.keys()])) {
        assert.equal(after.get(key), expectedStep(key, matcher, input), key);
      }
      assert.equal(steps.length, after.size);
    }),
  );
});

test('plans nothing more after the plan was executed', () => {
  fc.assert(
    fc.property(arbitraryInput, (input) => {
      const matcher = matcherOf(input.services);
      const states = new Map(input.present);
      for (const step of planListeners({ ...input, matcher, now: NOW, monotonic: NOW })) execute(step, states);
      const again = planListeners({ ...input, matcher, present: states, now: NOW, monotonic: NOW });
      assert.deepEqual(
        again.filter((step) => step.kind !== 'keep'),
        [],
      );
    }),
  );
});

test('opens listeners before it closes others, and plans only the given keys', () => {
  fc.assert(
    fc.property(arbitraryInput, fc.subarray(PORTS), (input, ports) => {
      const matcher = matcherOf(input.services);
      const all = planListeners({ ...input, matcher, now: NOW, monotonic: NOW });
      const kinds = all.map((step) => step.kind);
      assert.ok(kinds.lastIndexOf('open') < kinds.indexOf('close') || !kinds.includes('close'));
      const keys = ports.map(keyOf);
      const part = planListeners({ ...input, matcher, keys, now: NOW, monotonic: NOW });
      assert.deepEqual(
        part,
        all.filter((step) => keys.includes(step.key)),
      );
    }),
  );
});

interface PlanInput {
  readonly present: ReadonlyMap<ListenerKey, ListenerStatus>;
  readonly suspensions: readonly Suspension[];
}

/** Returns the step that `planListeners` must plan for this listener, or undefined if it must plan no step. */
function expectedStep(key: ListenerKey, matcher: Matcher, { present, suspensions }: PlanInput): string | undefined {
  const state = present.get(key);
  if (state?.kind === 'busy') return 'keep';
  const routes = [...matcher.routes.values()].filter((route) => listenerKeyOfRoute(route.key) === key);
  if (routes.length === 0) return state === undefined ? undefined : 'close';
  if (state?.kind === 'failed' && state.retryAt > NOW) return 'keep';
  const serves = routes.some(({ endpoints, listener, service, settings }) => {
    const isSuspended = suspensionFor(suspensions, service, NOW) !== undefined;
    if (isSuspended && listener.protocol === 'TCP' && settings.httpPorts !== undefined) return true;
    return endpoints.length > 0 && (listener.shared === true || !isSuspended);
  });
  if (serves) return state?.kind === 'open' ? 'keep' : 'open';
  return state?.kind === 'allocated' ? 'keep' : 'allocate';
}

function execute(step: ListenerStep, states: Map<ListenerKey, ListenerStatus>): void {
  switch (step.kind) {
    case 'open':
      states.set(step.key, { kind: 'open' });
      return;
    case 'allocate':
      states.set(step.key, { kind: 'allocated' });
      return;
    case 'close':
      states.delete(step.key);
      return;
    case 'keep':
  }
}

function matcherOf(list: readonly TestService[]): Matcher {
  return createMatcher(tableFor({ a: ADDRESS }, list), 'a');
}

function suspensionOf(namespace: string): Suspension {
  return {
    uid: namespace,
    name: namespace,
    target: { kind: 'namespace', namespace },
    message: '',
    until: null,
    reason: 'SuspendedByOperator',
    origin: { kind: 'store' },
    createdAt: null,
  };
}
