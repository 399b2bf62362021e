// Tests HealthMonitor with a manual clock and simulated checks.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import {
  createMatcher,
  diff,
  type Endpoint,
  endpointKey,
  type HealthCheckSettings,
  patchMatcher,
  type RoutingTable,
} from '@weir/model';
import { ManualClock } from '@weir/runtime';
import type { PassiveHealthReport } from '../../../src/upstream/connect-reports.ts';
import { failed, PASSED } from '../../../src/upstream/health/check.ts';
import { HealthMonitor } from '../../../src/upstream/health/health-monitor.ts';
import type { WorkerCommand } from '../../../src/worker/messages.ts';
import { PORT } from '../../fixtures/listen-address.ts';
import { type TestService, tableFor } from '../../fixtures/tables.ts';

const ENDPOINTS: readonly Endpoint[] = ['10.0.0.1', '10.0.0.2', '10.0.0.3', '10.0.0.4'].map((address) => ({
  address,
  port: 80,
}));
const KEYS = ENDPOINTS.map(endpointKey);
const LISTENER = `TCP/192.0.2.1/${PORT}`;
const CHECK: HealthCheckSettings = {
  kind: 'tcp',
  intervalMs: 1_000,
  timeoutMs: 500,
  healthyThreshold: 1,
  unhealthyThreshold: 2,
};

interface MonitorSetup {
  readonly clock: ManualClock;
  readonly monitor: HealthMonitor;
  /** The excluded endpoints by listener, according to the commands to the workers. */
  readonly excludedByListener: Map<string, readonly string[]>;
  readonly down: Set<string>;
  readonly commands: WorkerCommand[];
  checksMade: number;
  serve(...services: TestService[]): void;
  fail(endpoint: string | undefined, failures?: number): Promise<void>;
}

function setUpMonitor(...services: TestService[]): MonitorSetup {
  const clock = new ManualClock();
  const matcher = createMatcher({ entries: new Map() }, 'a');
  let table: RoutingTable = { entries: new Map() };
  const down = new Set<string>();
  const excludedByListener = new Map<string, readonly string[]>();
  const commands: WorkerCommand[] = [];
  const monitor = new HealthMonitor({
    routes: matcher.routes,
    clock,
    random: () => 0.5,
    post(command) {
      commands.push(command);
      if (command.kind === 'health') for (const key of command.listeners) excludedByListener.set(key, command.excluded);
    },
    async runCheck({ endpoint }) {
      setup.checksMade += 1;
      return down.has(endpointKey(endpoint)) ? failed('ECONNREFUSED') : PASSED;
    },
  });
  const setup: MonitorSetup = {
    clock,
    monitor,
    excludedByListener,
    down,
    commands,
    checksMade: 0,
    serve(...served) {
      const next = tableFor({ a: '192.0.2.1' }, served);
      monitor.onRoutesChanged(patchMatcher(matcher, diff(table, next)));
      table = next;
    },
    async fail(endpoint = '', failures = 3) {
      monitor.recordPassiveHealth([{ listener: LISTENER, endpoint, succeeded: false, failures, answers: undefined }]);
      await clock.advance(100);
    },
  };
  setup.serve(...services);
  return setup;
}

const web = (endpoints: readonly Endpoint[], over: Partial<TestService> = {}): TestService => ({
  name: 'web',
  port: PORT,
  endpoints,
  ...over,
});

test('readmits an ejected endpoint after a time, and leaves no timer when closed', async () => {
  const { clock, monitor, excludedByListener, fail } = setUpMonitor(web(ENDPOINTS));
  await fail(KEYS[0], 2);
  assert.deepEqual(excludedByListener.get(LISTENER), undefined);
  await fail(KEYS[0], 1);
  assert.deepEqual(excludedByListener.get(LISTENER), [KEYS[0]]);
  assert.deepEqual(monitor.commandsForNewWorker(), [
    { kind: 'health', listeners: [LISTENER], excluded: [KEYS[0]], failing: [], draining: [] },
  ]);
  await clock.advance(10_000);
  assert.deepEqual(excludedByListener.get(LISTENER), []);
  assert.deepEqual(monitor.commandsForNewWorker(), []);
  monitor.close();
  assert.equal(clock.pendingTimers, 0);
});

test('ejects an endpoint that fails to answer until its first good answer, whatever its connections do', async () => {
  const { clock, excludedByListener, monitor } = setUpMonitor(web(ENDPOINTS));
  const report = async (over: Partial<PassiveHealthReport>): Promise<readonly string[] | undefined> => {
    const [endpoint = ''] = KEYS;
    const nothing = { listener: LISTENER, endpoint, succeeded: false, failures: 0, answers: undefined };
    monitor.recordPassiveHealth([{ ...nothing, ...over }]);
    await clock.advance(100);
    return excludedByListener.get(LISTENER);
  };
  assert.deepEqual(await report({ answers: 'failed' }), [KEYS[0]]);
  assert.deepEqual(await report({ succeeded: true }), [KEYS[0]]);
  assert.match([...monitor.unhealthy()][0]?.endpoints[0]?.why ?? '', /5 requests in a row/);
  assert.deepEqual(await report({ answers: 'good' }), []);
  monitor.close();
});

test('ejects at most half of the endpoints: those that failed first', async () => {
  const { excludedByListener, fail, monitor } = setUpMonitor(web(ENDPOINTS));
  for (const key of [3, 1, 0, 2].map((index) => KEYS[index])) await fail(key);
  assert.deepEqual(excludedByListener.get(LISTENER), [KEYS[1], KEYS[3]]);
  monitor.close();
});

test('sends one command for endpoints that failed together', async () => {
  const { clock, commands, monitor } = setUpMonitor(web(ENDPOINTS));
  for (const endpoint of KEYS.slice(0, 2)) {
    for (let worker = 0; worker < 4; worker += 1) {
      monitor.recordPassiveHealth([
        { listener: LISTENER, endpoint, succeeded: false, failures: 30, answers: undefined },
      ]);
    }
  }
  await clock.advance(1_000);
  assert.deepEqual(commands, [
    { kind: 'health', listeners: [LISTENER], excluded: KEYS.slice(0, 2), failing: [], draining: [] },
  ]);
  monitor.close();
});

test('forgets the failures of an endpoint that was removed', async () => {
  const { clock, excludedByListener, fail, serve, monitor } = setUpMonitor(web(ENDPOINTS));
  await fail(KEYS[0]);
  serve(web(ENDPOINTS.slice(1)));
  await clock.advance(100);
  assert.deepEqual(excludedByListener.get(LISTENER), []);
  serve(web(ENDPOINTS));
  await clock.advance(100);
  assert.deepEqual(excludedByListener.get(LISTENER), []);
  await fail(KEYS[0], 2);
  assert.deepEqual(excludedByListener.get(LISTENER), [], 'two failures after the return are not enough');
  monitor.close();
});

test('keeps the health of two Services with the same endpoints apart', async () => {
  const { excludedByListener, fail, monitor } = setUpMonitor(web(ENDPOINTS), {
    ...web(ENDPOINTS),
    name: 'other',
    port: 81,
  });
  await fail(KEYS[0]);
  assert.deepEqual([...excludedByListener.keys()], [LISTENER]);
  monitor.close();
});

test('starts without failures when a listener is given to another Service', async () => {
  const { clock, excludedByListener, fail, serve, monitor } = setUpMonitor(web(ENDPOINTS));
  await fail(KEYS[0]);
  serve();
  excludedByListener.clear();
  serve({ ...web(ENDPOINTS), name: 'other' });
  await clock.advance(100);
  assert.deepEqual(excludedByListener.get(LISTENER) ?? [], []);
  monitor.close();
});

test('excludes and readmits an endpoint by its checks, and uses all endpoints if all fail', async () => {
  const { clock, excludedByListener, down, monitor } = setUpMonitor(
    web(ENDPOINTS, { settings: { healthCheck: CHECK } }),
  );
  down.add(KEYS[0] ?? '');
  await clock.advance(3_000);
  assert.deepEqual(excludedByListener.get(LISTENER), [KEYS[0]]);
  for (const key of KEYS) down.add(key);
  await clock.advance(3_000);
  assert.deepEqual(excludedByListener.get(LISTENER), []);
  assert.deepEqual(
    [...monitor.unhealthy()].flatMap(({ endpoints }) => endpoints).map(({ state, used, why }) => [state, used, why]),
    KEYS.map(() => ['failing', true, 'its tcp check fails: ECONNREFUSED']),
  );
  down.clear();
  await clock.advance(3_000);
  assert.deepEqual(excludedByListener.get(LISTENER), []);
  assert.deepEqual([...monitor.unhealthy()], []);
  monitor.close();
  assert.equal(clock.pendingTimers, 0);
});

test('drains an endpoint that fails its check if the Service has a drain timeout and another endpoint works', async () => {
  const { clock, commands, down, monitor, serve, fail } = setUpMonitor(
    web(ENDPOINTS, { settings: { healthCheck: { ...CHECK, drainTimeoutMs: 1_000 } } }),
  );
  const draining = (): readonly string[] =>
    commands.flatMap((command) => (command.kind === 'health' ? [command.draining] : [])).at(-1) ?? [];
  down.add(KEYS[0] ?? '');
  await clock.advance(3_000);
  assert.deepEqual(draining(), [KEYS[0]]);
  assert.deepEqual(monitor.commandsForNewWorker(), [
    { kind: 'health', listeners: [LISTENER], excluded: [KEYS[0]], failing: [KEYS[0]], draining: [KEYS[0]] },
  ]);
  for (const key of KEYS) down.add(key);
  await clock.advance(3_000);
  assert.deepEqual(draining(), [], 'all fail');
  down.delete(KEYS[3] ?? '');
  await clock.advance(3_000);
  assert.deepEqual(draining(), KEYS.slice(0, 3));
  await fail(KEYS[3]);
  assert.deepEqual(draining(), [], 'the only endpoint that passes its check is ejected');
  await clock.advance(10_000);
  assert.deepEqual(draining(), KEYS.slice(0, 3));
  serve(web(ENDPOINTS, { settings: { healthCheck: CHECK } }));
  await clock.advance(100);
  assert.deepEqual(draining(), [], 'the Service has no drain timeout any more');
  monitor.close();
});

test('does not drain endpoints in favour of a new endpoint or one that is about to fail', async () => {
  const settings = { healthCheck: { ...CHECK, drainTimeoutMs: 1_000 } };
  const { clock, commands, down, monitor, serve } = setUpMonitor(web(ENDPOINTS.slice(0, 3), { settings }));
  await clock.advance(1_400);
  for (const key of KEYS) down.add(key);
  await clock.advance(3_000);
  serve(web(ENDPOINTS, { settings }));
  await clock.advance(3_000);
  const drainCommands = commands.filter((command) => command.kind === 'health' && command.draining.length > 0);
  assert.deepEqual(drainCommands, []);
  const draining = (): unknown =>
    commands.flatMap((command) => (command.kind === 'health' ? [command.draining] : [])).at(-1);
  for (const [isDown, expected] of [
    [false, KEYS.slice(0, 3)],
    [true, []],
    [false, KEYS.slice(0, 3)],
  ] as const) {
    if (isDown) down.add(KEYS[3] ?? '');
    else down.delete(KEYS[3] ?? '');
    // This time is long enough for one more check, and too short for two.
    await clock.advance(1_200);
    assert.deepEqual(draining(), expected);
  }
  monitor.close();
});

test('ends checks that no Service asks for any more', async () => {
  const setup = setUpMonitor(web(ENDPOINTS, { settings: { healthCheck: CHECK } }));
  setup.down.add(KEYS[0] ?? '');
  await setup.clock.advance(3_000);
  assert.ok(setup.checksMade >= 8);
  setup.serve(web(ENDPOINTS));
  await setup.clock.advance(100);
  const { checksMade } = setup;
  await setup.clock.advance(10_000);
  assert.equal(setup.checksMade, checksMade);
  assert.deepEqual(setup.excludedByListener.get(LISTENER), [], 'results of earlier checks are forgotten');
  setup.monitor.close();
});

test('runs equal checks of two Services once, and different checks separately', async () => {
  const serviceWithCheck = (name: string, port: number, healthCheck: HealthCheckSettings = CHECK): TestService =>
    web(ENDPOINTS.slice(0, 1), { name, port, settings: { healthCheck } });
  const shared = setUpMonitor(serviceWithCheck('one', 81), serviceWithCheck('two', 82));
  await shared.clock.advance(10_000);
  assert.ok(shared.checksMade >= 9 && shared.checksMade <= 11, `${shared.checksMade}`);
  shared.monitor.close();
  const separate = setUpMonitor(
    serviceWithCheck('one', 81),
    serviceWithCheck('two', 82, { ...CHECK, kind: 'http', path: '/' }),
  );
  await separate.clock.advance(10_000);
  assert.ok(separate.checksMade >= 18, `${separate.checksMade}`);
  separate.monitor.close();
});

test('counts a check over TLS as several, because it occupies the main thread longer', async () => {
  const many = Array.from({ length: 200 }, (_, index): Endpoint => ({ address: `10.0.1.${index}`, port: 80 }));
  const http: HealthCheckSettings = { ...CHECK, kind: 'http', path: '/' };
  for (const [healthCheck, least, most] of [
    [http, 1_800, 2_000],
    [{ ...http, overTls: true }, 800, 1_000],
  ] as const) {
    const setup = setUpMonitor(web(many, { settings: { healthCheck } }));
    await setup.clock.advance(10_000);
    assert.ok(setup.checksMade >= least && setup.checksMade <= most, `${setup.checksMade}`);
    setup.monitor.close();
  }
});

test('never checks a UDP port', async () => {
  const setup = setUpMonitor(web(ENDPOINTS, { protocol: 'UDP', settings: { healthCheck: CHECK } }));
  await setup.clock.advance(10_000);
  assert.equal(setup.checksMade, 0);
  setup.monitor.close();
});
