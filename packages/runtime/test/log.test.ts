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

test('an entry is one JSON line with name, part, level in words and ISO time', () => {
  const { log, entries } = recorded('info');
  log.child({ part: 'follow' }).info({ revision: 7 }, 'table applied');
  const [entry] = entries();
  assert.ok(entry !== undefined);
  assert.equal(new Date(String(entry.time)).toISOString(), entry.time);
  const { time: _time, pid: _pid, hostname: _hostname, ...rest } = entry;
  assert.deepEqual(rest, { level: 'info', name: 'weir-test', part: 'follow', revision: 7, msg: 'table applied' });
});

test('entries below the level are left out', () => {
  const { log, entries } = recorded('warn');
  log.info('not this');
  log.warn('this');
  assert.deepEqual(
    entries().map(({ msg }) => msg),
    ['this'],
  );
});

test('an error is logged with its causes and stack, but without what a library hung on it', () => {
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

test('the world failing is logged without a stack: it says nothing that the message does not', () => {
  const { log, entries } = recorded('info');
  const full = Object.assign(new Error('no space left'), { code: 'ENOSPC', syscall: 'write' });
  for (const err of [new WeirError('AWAY', 'Redis is not there'), full]) log.warn({ err }, 'tried again');
  assert.deepEqual(
    entries().map(({ err }) => err),
    [
      { type: 'WeirError', code: 'AWAY', message: 'Redis is not there' },
      { type: 'Error', code: 'ENOSPC', message: 'no space left' },
    ],
  );
});

test('what is no error can be logged as one', () => {
  const { log, entries } = recorded('info');
  log.error({ err: 'text' }, 'odd');
  assert.deepEqual(entries()[0]?.err, { message: 'text' });
});

test('a secret in a field is not logged', () => {
  const { log, entries } = recorded('info');
  log.info({ password: new Secret('hunter2') }, 'connecting');
  assert.equal(entries()[0]?.password, '[redacted]');
});

test('an unknown level is refused with those that exist', () => {
  assert.throws(() => createLogger({ name: 'x', level: 'loud' as LogLevel }), {
    code: 'USAGE',
    message: /"loud".*fatal, error/,
  });
  assert.throws(() => parseConfig({ level: logLevel('WEIR_LOG_LEVEL') }, { WEIR_LOG_LEVEL: 'loud' }), {
    code: 'CONFIG_INVALID',
  });
  assert.equal(parseConfig({ level: logLevel('WEIR_LOG_LEVEL') }, {}).level, 'info');
});

test('the silent logger takes everything and its children are silent too', () => {
  assert.equal(silentLogger().child({ part: 'x' }).isLevelEnabled('fatal'), false);
});
