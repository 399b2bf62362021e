import assert from 'node:assert/strict';
import { test } from 'node:test';
import {
  createLogger,
  type Logger,
  type LogLevel,
  logLevel,
  parseConfig,
  Secret,
  silentLogger,
  WeirError,
} from '../src/index.ts';

function recorded(level: LogLevel): { log: Logger; entries: () => Record<string, unknown>[] } {
  const lines: string[] = [];
  const log = createLogger({ name: 'weir-test', level, destination: { write: (line) => void lines.push(line) } });
  return { log, entries: () => lines.map((line) => JSON.parse(line)) };
}

test('writes an entry as one JSON line with name, part, level name and ISO time', () => {
  const { log, entries } = recorded('info');
  log.child({ part: 'follow' }).info({ revision: 7 }, 'table applied');
  const [entry] = entries();
  assert.ok(entry !== undefined);
  assert.equal(new Date(String(entry.time)).toISOString(), entry.time);
  const { time: _time, pid: _pid, hostname: _hostname, ...rest } = entry;
  assert.deepEqual(rest, { level: 'info', name: 'weir-test', part: 'follow', revision: 7, msg: 'table applied' });
});

test('drops entries below the level', () => {
  const { log, entries } = recorded('warn');
  log.info('not this');
  log.warn('this');
  assert.deepEqual(
    entries().map(({ msg }) => msg),
    ['this'],
  );
});

test('logs an error with its causes and stack, but without properties that a library attached', () => {
  const { log, entries } = recorded('info');
  const cause = new Error('WRONGPASS');
  const error = Object.assign(new Error('cannot sign in', { cause }), { code: 'AUTH', command: { args: ['hunter2'] } });
  log.error({ err: error }, 'store is away');
  const err = entries()[0]?.err as Record<string, unknown>;
  assert.deepEqual(
    { ...err, stack: '' },
    { type: 'Error', code: 'AUTH', message: 'cannot sign in: WRONGPASS', stack: '' },
  );
  assert.match(String(err.stack), /log\.test\.ts/);
});

test('logs failures of the environment without a stack', () => {
  const { log, entries } = recorded('info');
  const diskFull = Object.assign(new Error('no space left'), { code: 'ENOSPC', syscall: 'write' });
  for (const err of [new WeirError('AWAY', 'Redis refuses connections'), diskFull]) log.warn({ err }, 'retrying');
  assert.deepEqual(
    entries().map(({ err }) => err),
    [
      { type: 'WeirError', code: 'AWAY', message: 'Redis refuses connections' },
      { type: 'Error', code: 'ENOSPC', message: 'no space left' },
    ],
  );
});

test('logs a thrown value that is not an Error', () => {
  const { log, entries } = recorded('info');
  log.error({ err: 'text' }, 'odd');
  assert.deepEqual(entries()[0]?.err, { message: 'text' });
});

test('redacts a Secret in a field', () => {
  const { log, entries } = recorded('info');
  log.info({ password: new Secret('hunter2') }, 'connecting');
  assert.equal(entries()[0]?.password, '[redacted]');
});

test('refuses an unknown level and lists the known levels', () => {
  assert.throws(() => createLogger({ name: 'x', level: 'loud' as LogLevel }), {
    code: 'USAGE',
    message: /"loud".*fatal, error/,
  });
  assert.throws(() => parseConfig({ level: logLevel('WEIR_LOG_LEVEL') }, { WEIR_LOG_LEVEL: 'loud' }), {
    code: 'CONFIG_INVALID',
  });
  assert.equal(parseConfig({ level: logLevel('WEIR_LOG_LEVEL') }, {}).level, 'info');
});

test('silentLogger disables all levels, also for its children', () => {
  assert.equal(silentLogger().child({ part: 'x' }).isLevelEnabled('fatal'), false);
});
