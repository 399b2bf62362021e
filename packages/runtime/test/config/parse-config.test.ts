import assert from 'node:assert/strict';
import { test } from 'node:test';
import {
  anyText,
  boolean,
  ConfigError,
  type DurationGrammar,
  duration,
  hostPort,
  hostPortOrOff,
  integer,
  list,
  oneOf,
  optional,
  parseConfig,
  path,
  type Secret,
  secret,
  text,
} from '../../src/index.ts';

/** A grammar of durations in whole seconds or days, without combinations. */
const grammar: DurationGrammar = {
  parseDuration: (text) => {
    const [, count, unit] = /^(\d+)([sd])$/.exec(text) ?? [];
    return count === undefined ? undefined : Number(count) * (unit === 'd' ? 86_400_000 : 1_000);
  },
  formatDuration: (ms) => `${ms / 1_000}s`,
};

const spec = {
  fleet: text('WEIR_FLEET', { default: 'weir', pattern: /^[a-z0-9-]+$/, allowed: 'lower-case letters, digits and -' }),
  workers: integer('WEIR_WORKERS', { min: 1, max: 64, default: 2 }),
  classless: boolean('WEIR_CLASSLESS', { default: false }),
  drainMs: duration('WEIR_DRAIN', { grammar, minMs: 1000, default: 30_000 }),
  admin: hostPortOrOff('WEIR_ADMIN', { default: { host: '127.0.0.1', port: 8687 } }),
  password: secret('WEIR_PASSWORD'),
  addresses: list('WEIR_ADDRESSES', anyText, { default: [] }),
  level: oneOf('WEIR_LOG_LEVEL', ['info', 'debug'], { default: 'info' }),
  state: optional(path('WEIR_STATE')),
};

function mistakesOf(env: Record<string, string>): readonly string[] {
  try {
    parseConfig(spec, env);
  } catch (error) {
    assert.ok(error instanceof ConfigError);
    assert.equal(error.code, 'CONFIG_INVALID');
    return error.message.split('\n');
  }
  return assert.fail('the configuration was accepted');
}

test('gives a configuration the types of its settings, and defaults for unset or empty variables', () => {
  const config = parseConfig(spec, { WEIR_PASSWORD: 'hunter2', WEIR_WORKERS: '', WEIR_FLEET: '  ' });
  // This assignment tests the types that are inferred from `spec`.
  const typed: {
    fleet: string;
    workers: number;
    drainMs: number;
    level: 'info' | 'debug';
    state: string | undefined;
    password: Secret;
  } = config;
  assert.deepEqual(
    { fleet: typed.fleet, workers: typed.workers, drainMs: typed.drainMs, level: typed.level, state: typed.state },
    { fleet: 'weir', workers: 2, drainMs: 30_000, level: 'info', state: undefined },
  );
  assert.equal(typed.password.reveal(), 'hunter2');
});

test('parses every kind of value', () => {
  const config = parseConfig(spec, {
    WEIR_FLEET: ' edge ',
    WEIR_WORKERS: '64',
    WEIR_CLASSLESS: 'True',
    WEIR_DRAIN: '90s',
    WEIR_ADMIN: 'off',
    WEIR_PASSWORD: 'hunter2',
    WEIR_ADDRESSES: '10.0.0.1, 10.0.0.2,',
    WEIR_LOG_LEVEL: 'debug',
    WEIR_STATE: '/var/lib/weir',
  });
  assert.deepEqual(
    { ...config, password: config.password.reveal() },
    {
      fleet: 'edge',
      workers: 64,
      classless: true,
      drainMs: 90_000,
      admin: 'off',
      password: 'hunter2',
      addresses: ['10.0.0.1', '10.0.0.2'],
      level: 'debug',
      state: '/var/lib/weir',
    },
  );
});

test('freezes the configuration and its values', () => {
  const config = parseConfig(spec, { WEIR_PASSWORD: 'hunter2', WEIR_ADDRESSES: 'a', WEIR_ADMIN: 'h:1' });
  assert.ok(Object.isFrozen(config));
  assert.ok(Object.isFrozen(config.addresses));
  assert.ok(Object.isFrozen(config.admin));
});

test('reports all mistakes at once with variable, value and allowed values', () => {
  const mistakes = mistakesOf({
    WEIR_FLEET: 'My Fleet',
    WEIR_WORKERS: '65',
    WEIR_CLASSLESS: 'maybe',
    WEIR_DRAIN: '30',
    WEIR_ADMIN: ':8687',
    WEIR_LOG_LEVEL: 'verbose',
    WEIR_STATE: '~/state',
  });
  assert.deepEqual(mistakes, [
    'WEIR_FLEET is "My Fleet"; use lower-case letters, digits and -',
    'WEIR_WORKERS is "65"; use an integer from 1 to 64',
    'WEIR_CLASSLESS is "maybe"; use true or false',
    'WEIR_DRAIN is "30"; use a duration such as 500ms, 5s or 10m, at least 1s',
    'WEIR_ADMIN is ":8687"; use HOST:PORT such as 127.0.0.1:8687 or [::1]:8687, or off',
    'WEIR_PASSWORD is not set; use a secret without control characters',
    'WEIR_LOG_LEVEL is "verbose"; use one of info, debug',
    'WEIR_STATE is "~/state"; use a path, absolute or relative to the working directory (no ~)',
  ]);
});

test('refuses integers that are malformed or out of range', () => {
  const read = (value: string): number => parseConfig({ n: integer('N', { min: -5, max: 5 }) }, { N: value }).n;
  assert.equal(read(' -5 '), -5);
  assert.equal(read('+5'), 5);
  for (const wrong of ['6', '-6', '1.5', '1e0', '0x1', 'NaN', 'Infinity', '1 2', '99999999999999999999']) {
    assert.throws(() => read(wrong), { code: 'CONFIG_INVALID' }, wrong);
  }
});

test('accepts true, false, 1 and 0 as boolean and refuses names of object properties', () => {
  const read = (value: string): boolean => parseConfig({ b: boolean('B') }, { B: value }).b;
  assert.deepEqual(['true', 'false', '1', '0'].map(read), [true, false, true, false]);
  for (const wrong of ['yes', 'constructor', 'toString'])
    assert.throws(() => read(wrong), { code: 'CONFIG_INVALID' }, wrong);
});

test('refuses a duration outside its range', () => {
  const limited = { d: duration('D', { grammar, minMs: 1000, maxMs: 60_000 }) };
  assert.equal(parseConfig(limited, { D: '60s' }).d, 60_000);
  assert.throws(() => parseConfig(limited, { D: '61s' }), { message: /1s to 60s$/ });
  assert.throws(() => parseConfig({ d: duration('D', { grammar }) }, { D: '30d' }), { code: 'CONFIG_INVALID' });
});

test('refuses a list with one invalid item', () => {
  const item = { allowed: 'a digit', parse: (raw: string) => (/^\d$/.test(raw) ? Number(raw) : undefined) };
  assert.deepEqual(parseConfig({ l: list('L', item) }, { L: '1,2, 3' }).l, [1, 2, 3]);
  assert.throws(() => parseConfig({ l: list('L', item) }, { L: '1,x' }), {
    message: 'L is "1,x"; use a comma-separated list; each item: a digit',
  });
});

test('removes one trailing line break of a secret and never prints a secret', () => {
  const token = { token: secret('TOKEN') };
  assert.equal(parseConfig(token, { TOKEN: 's3cret\n' }).token.reveal(), 's3cret');
  assert.throws(
    () => parseConfig(token, { TOKEN: 's3\ncret' }),
    (error: Error) => error.message.startsWith('TOKEN is [redacted]; use') && !error.message.includes('cret\n'),
  );
  assert.throws(() => parseConfig(token, {}), { message: /^TOKEN is not set/ });
});

test('validates an optional setting that is set', () => {
  const optionalAddress = { listen: optional(hostPort('LISTEN')) };
  assert.equal(parseConfig(optionalAddress, {}).listen, undefined);
  assert.deepEqual(parseConfig(optionalAddress, { LISTEN: '[::1]:80' }).listen, { host: '::1', port: 80 });
  assert.throws(() => parseConfig(optionalAddress, { LISTEN: 'nowhere' }), { code: 'CONFIG_INVALID' });
});
