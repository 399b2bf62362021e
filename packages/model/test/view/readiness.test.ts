// Checks the messages about Services whose clients are refused because no endpoint is in use.
import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { NO_ALLOCATIONS, type ServiceView, type Snapshot, serviceViewsFor, translate } from '@weir/model';
import { port, service, slice, snapshotOf } from '../fixtures/snapshot.ts';

const ports = [port(80, { name: 'http' }), port(443, { name: 'https' })];
const web = service('a/web', { ports });
const of = (...names: string[]): Snapshot['slices'][number]['ports'] =>
  names.map((name) => ({ name, port: 8080, protocol: 'TCP' }));
const ready = slice('a/web', ['10.0.0.1'], { ports: of('http', 'https') });
const unready = { ...ready, endpoints: ready.endpoints.map((each) => ({ ...each, ready: false, serving: false })) };

function shown(parts: Partial<Snapshot>): { readonly view: ServiceView; readonly problems: readonly string[] } {
  const { table, problems } = translate(snapshotOf({ services: [web], ...parts }), NO_ALLOCATIONS);
  const previousAddresses = new Map([['uid-a-web', ['192.0.2.1']]]);
  const [view] = serviceViewsFor({
    table,
    heartbeats: [],
    suspensions: [],
    now: 0,
    previousAddresses,
    reachable: true,
  });
  assert.ok(view);
  return { view, problems: problems.filter(({ code }) => code === 'NoReadyEndpoints').map(({ message }) => message) };
}

/** Returns the message of the problem NoReadyEndpoints. Asserts that the message of the condition starts with the same text. */
function messageFor(parts: Partial<Snapshot>): string {
  const { view, problems } = shown(parts);
  const degraded = view.conditions.find(({ type }) => type === 'Degraded');
  const conditionMessage = degraded?.reason === 'NoReadyEndpoints' ? degraded.message : '';
  const [first = '', ...more] = problems;
  assert.ok(conditionMessage.startsWith(first) && more.length === 0, `${conditionMessage} is not ${problems.join()}`);
  return first;
}

describe('a Service without endpoints in use', () => {
  test('distinguishes missing endpoints, endpoints that are not ready, and endpoints that are not allowed', () => {
    assert.match(messageFor({}), /^there is no endpoint, so clients are refused; check that the selector finds pods/);
    assert.match(
      messageFor({ slices: [unready] }),
      /^no endpoint is ready, so clients are refused; check the readiness/,
    );
    const settings = { ...snapshotOf({}).settings, trust: { kind: 'pods', serviceCidrs: [] } } as const;
    assert.match(
      messageFor({ slices: [ready], settings }),
      /^none of the endpoints is allowed, .* weir\.dev\/Accepted/,
    );
    assert.equal(messageFor({ slices: [ready] }), '');
  });

  test('names the port, also when no slice has a port of that name', () => {
    const partly = slice('a/web', ['10.0.0.1'], { ports: of('http') });
    assert.match(
      messageFor({ slices: [partly] }),
      /^there is no endpoint for port 443\/TCP, so clients are refused there;/,
    );
    const { view } = shown({ slices: [partly] });
    assert.deepEqual(view.endpoints, { ready: 0, total: 0 }, 'counted is the port that has the fewest');
    assert.equal(view.message, 'served at 192.0.2.1');
  });

  test('reports that only terminating endpoints serve, with the port', () => {
    const leaves = { ready: false, serving: true, terminating: true };
    const leaving = { ...ready, endpoints: ready.endpoints.map((each) => ({ ...each, ...leaves })) };
    assert.match(
      messageFor({ slices: [leaving] }),
      /^no endpoint is ready: only terminating endpoints serve clients, and clients are refused once these have ended; check the readiness/,
    );
    const { message, endpoints } = shown({ slices: [leaving] }).view;
    assert.equal(message, 'served at 192.0.2.1');
    assert.deepEqual(endpoints, { ready: 0, total: 1 });
    const http = slice('a/web', ['10.0.0.2'], { name: 'web-2', ports: of('http') });
    assert.match(
      messageFor({ slices: [leaving, http] }),
      /^no endpoint is ready for port 443\/TCP: only terminating endpoints serve clients/,
    );
    const partly = { ...leaving, ports: of('http') };
    assert.match(
      messageFor({ slices: [partly] }),
      /^there is no endpoint for port 443\/TCP, so clients are refused there; .*; no endpoint is ready for port 80\/TCP: /,
    );
    const used = service('a/web', { ports, publishNotReadyAddresses: true });
    assert.equal(messageFor({ services: [used], slices: [leaving] }), '');
  });

  test('reports in the condition Programmed that clients are refused', () => {
    assert.equal(
      shown({}).view.message,
      'ports are allocated at 192.0.2.1, but clients are refused while no endpoint is ready',
    );
  });

  test('does not mention ports that are refused for another reason', () => {
    const mixed = service('a/web', { ports: [ports[0] ?? port(80), port(9, { name: 'sctp', protocol: 'SCTP' })] });
    assert.equal(messageFor({ services: [mixed], slices: [ready] }), '');
  });
});
