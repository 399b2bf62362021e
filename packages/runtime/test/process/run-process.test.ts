import assert from 'node:assert/strict';
import { type ChildProcessByStdio, spawn } from 'node:child_process';
import { EventEmitter, once } from 'node:events';
import type { Readable } from 'node:stream';
import { text as readAll } from 'node:stream/consumers';
import { type TestContext, test } from 'node:test';
import { fileURLToPath } from 'node:url';
import {
  createLogger,
  integer,
  ManualClock,
  type Part,
  type ProcessControl,
  type ProcessPlan,
  parseConfig,
  runProcess,
  silentLogger,
} from '../../src/index.ts';

class Host {
  readonly events = new EventEmitter();
  readonly clock = new ManualClock();
  readonly exits: number[] = [];
  errors = '';

  exit(code: number): void {
    this.exits.push(code);
  }

  writeError(text: string): void {
    this.errors += text;
  }
}

interface Running {
  readonly host: Host;
  readonly ended: Promise<void>;
  /** Resolves when the last part has started. */
  readonly started: Promise<void>;
  readonly control: ProcessControl;
}

function run(parts: Part[], plan: Partial<ProcessPlan> = {}): Running {
  const host = new Host();
  const { promise: started, resolve } = Promise.withResolvers<void>();
  let control: ProcessControl | undefined;
  const last: Part = { name: 'last', start: () => resolve(), close: () => {} };
  const ended = runProcess(
    'weir-test',
    (given) => {
      control = given;
      return { log: silentLogger(), parts: [...parts, last], ...plan };
    },
    host,
  );
  assert.ok(control !== undefined);
  return { host, ended, started, control };
}

function part(does: Partial<Part> = {}): Part {
  return { name: 'part', start: () => {}, close: () => {}, ...does };
}

for (const signal of ['SIGTERM', 'SIGINT']) {
  test(`${signal} closes the parts and exits with 0`, async () => {
    const closed: string[] = [];
    const { host, ended, started } = run([part({ close: () => void closed.push('part') })]);
    await started;
    host.events.emit(signal);
    await ended;
    assert.deepEqual({ closed, exits: host.exits, errors: host.errors }, { closed: ['part'], exits: [0], errors: '' });
    assert.equal(host.clock.pendingTimers, 0);
    assert.deepEqual(host.events.eventNames(), []);
  });
}

test('exits at once on a second signal', async () => {
  const { promise: stuck, resolve } = Promise.withResolvers<void>();
  const { host, ended, started } = run([part({ close: () => stuck })]);
  await started;
  host.events.emit('SIGTERM');
  host.events.emit('SIGINT');
  assert.deepEqual(host.exits, [130]);
  resolve();
  await ended;
  assert.deepEqual(host.exits, [130]);
});

test('exits with 1 if closing takes longer than the timeout', async () => {
  const { promise: stuck, resolve } = Promise.withResolvers<void>();
  const { host, ended, started } = run([part({ close: () => stuck })], { closeTimeoutMs: 500 });
  await started;
  host.events.emit('SIGTERM');
  await host.clock.advance(499);
  assert.deepEqual(host.exits, []);
  await host.clock.advance(1);
  assert.deepEqual(host.exits, [1]);
  assert.equal(host.errors, 'weir-test: failed to close within 500 ms; exiting\n');
  resolve();
  await ended;
});

test('aborts the start of parts on a signal and exits with 0', async () => {
  const { promise: starting, resolve } = Promise.withResolvers<void>();
  const waiting = part({
    start: (signal) =>
      new Promise((_resolve, reject) => {
        signal.addEventListener('abort', () => reject(signal.reason));
        resolve();
      }),
  });
  const { host, ended } = run([waiting]);
  await starting;
  host.events.emit('SIGTERM');
  await ended;
  assert.deepEqual({ exits: host.exits, errors: host.errors }, { exits: [0], errors: '' });
});

test('exits with 0 if a part rejects with an AbortError of Node after a stop', async () => {
  const waiting = part({ start: async (signal) => void (await once(new EventEmitter(), 'never', { signal })) });
  const { host, ended, control } = run([waiting]);
  control.stop();
  await ended;
  assert.deepEqual({ exits: host.exits, errors: host.errors }, { exits: [0], errors: '' });
});

test('exits with 1 and one line if a part fails to start', async () => {
  const closed: string[] = [];
  const broken = part({
    name: 'store',
    start: () => Promise.reject(new Error('cannot reach redis:6379\n  try again')),
  });
  const { host, ended } = run([part({ close: () => void closed.push('part') }), broken]);
  await ended;
  assert.deepEqual({ closed, exits: host.exits }, { closed: ['part'], exits: [1] });
  assert.equal(host.errors, 'weir-test: store: cannot reach redis:6379 try again\n');
});

test('exits with 2 and prints all mistakes of an invalid configuration', async () => {
  const host = new Host();
  const spec = { a: integer('A', { min: 1, max: 2 }), b: integer('B', { min: 1, max: 2 }) };
  const start = (env: Record<string, string>): Promise<void> =>
    runProcess('weir-test', () => ({ log: silentLogger(), parts: [], ...parseConfig(spec, env) }), host);
  await start({ A: '3', B: 'x' });
  await start({ A: '1' });
  assert.deepEqual(host.exits, [2, 2]);
  assert.equal(
    host.errors,
    'weir-test: invalid configuration:\n  A is "3"; use an integer from 1 to 2\n  B is "x"; use an integer from 1 to 2\n' +
      'weir-test: B is not set; use an integer from 1 to 2\n',
  );
});

test('closes the parts and exits with 1 when a part reports a failure', async () => {
  const closed: string[] = [];
  const { host, ended, started, control } = run([part({ close: () => void closed.push('part') })]);
  await started;
  control.fail(new Error('the claim was lost'));
  control.fail(new Error('a consequence'));
  await ended;
  assert.deepEqual({ closed, exits: host.exits }, { closed: ['part'], exits: [1] });
  assert.equal(host.errors, 'weir-test: the claim was lost\n');
});

test('exits with 0 after stop', async () => {
  const { host, ended, started, control } = run([]);
  await started;
  control.stop();
  await ended;
  assert.deepEqual(host.exits, [0]);
});

test('exits with 1 if a part fails to close', async () => {
  const { host, ended, started } = run([
    part({ name: 'journal', close: () => Promise.reject(new Error('disk full')) }),
  ]);
  await started;
  host.events.emit('SIGTERM');
  await ended;
  assert.deepEqual(
    { exits: host.exits, errors: host.errors },
    { exits: [1], errors: 'weir-test: failed to close: journal\n' },
  );
});

for (const event of ['uncaughtException', 'unhandledRejection']) {
  test(`logs an ${event} as fatal with its stack and exits with 1`, async () => {
    const lines: string[] = [];
    const log = createLogger({ name: 'x', level: 'fatal', destination: { write: (line) => void lines.push(line) } });
    const { host, ended, started, control } = run([], { log });
    await started;
    host.events.emit(event, new Error('a bug'));
    assert.deepEqual(host.exits, [1]);
    assert.match(lines[0] ?? '', /"level":"fatal".*"message":"a bug","stack":"Error: a bug/);
    control.stop();
    await ended;
    assert.deepEqual(host.exits, [1]);
  });
}

test('a real process closes its parts on SIGTERM and exits with 0', async (t) => {
  const child = startFixture(t, 'serve');
  const stdout = readAll(child.stdout);
  await hasLogged(child, '"msg":"started"');
  child.kill('SIGTERM');
  const [code] = await once(child, 'exit');
  assert.equal(code, 0);
  assert.equal(await stdout, 'closed\n');
});

test('a real process logs a bug as fatal and exits with 1', async (t) => {
  const child = startFixture(t, 'bug');
  const stderr = readAll(child.stderr);
  const [code] = await once(child, 'exit');
  assert.equal(code, 1);
  assert.match(await stderr, /"level":"fatal".*a bug in a timer/);
});

type Fixture = ChildProcessByStdio<null, Readable, Readable>;

function startFixture(t: TestContext, mode: string): Fixture {
  const fixture = fileURLToPath(new URL('fixtures/process.ts', import.meta.url));
  const child: Fixture = spawn(process.execPath, ['--conditions=source', fixture], {
    env: { ...process.env, FIXTURE: mode },
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  t.after(() => child.kill('SIGKILL'));
  return child;
}

async function hasLogged(child: Fixture, message: string): Promise<void> {
  let text = '';
  while (!text.includes(message)) {
    const [chunk] = await once(child.stderr, 'data');
    text += chunk;
  }
}

test('refuses command line arguments', async () => {
  const host = Object.assign(new Host(), { args: ['--workers', '4'] });
  await runProcess('test', () => assert.fail('plan was called'), host);
  assert.deepEqual(host.exits, [2]);
  assert.match(host.errors, /^test: unexpected arguments "--workers 4"; use environment variables/);
});
