import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { parseArguments } from '../src/arguments.ts';

describe('arguments', () => {
  test('the name of the benchmark is enough', () => {
    const common = { pairs: 10, seconds: 2, isByDefault: true };
    const l4 = { ...common, subjects: ['weir', 'haproxy', 'nginx', 'envoy'] };
    assert.deepEqual(parseArguments(['l4']), { kind: 'l4', options: l4 });
    const fairness = { ...common, subjects: ['weir', 'haproxy'] };
    assert.deepEqual(parseArguments(['fairness']), { kind: 'fairness', options: fairness });
  });

  test('every option has its say', () => {
    const args = ['l4', '--pairs', '20', '--seconds=5', '--subjects', 'pipe, weir,pipe', '--profile', 'out'];
    const options = { pairs: 20, seconds: 5, subjects: ['pipe', 'weir'], isByDefault: false, profile: 'out' };
    assert.deepEqual(parseArguments(args), { kind: 'l4', options });
  });

  test('scenarios run in their own order, in whichever they are named', () => {
    const command = parseArguments(['l4', '--only', 'memory, requests,memory']);
    assert.ok(command.kind === 'l4');
    assert.deepEqual(command.options.only, ['requests', 'memory']);
  });

  test('a soak has options of its own', () => {
    assert.deepEqual(parseArguments(['soak']), { kind: 'soak', options: { minutes: 10, seed: 1, workers: 2 } });
    const args = ['soak', '--minutes', '0.2', '--seed=7', '--workers', '4'];
    assert.deepEqual(parseArguments(args), { kind: 'soak', options: { minutes: 0.2, seed: 7, workers: 4 } });
    assert.deepEqual(parseArguments(['soak', '--help']), { kind: 'help' });
  });

  test('a control benchmark has options of its own', () => {
    const options = { services: [10, 100, 1_000, 10_000], followers: 100, rounds: 100 };
    assert.deepEqual(parseArguments(['control']), { kind: 'control', options });
    const args = ['control', '--services', '50, 20,50', '--followers=3', '--rounds', '5', '--only', 'rollout,start'];
    const chosen = { services: [20, 50], followers: 3, rounds: 5, only: ['start', 'rollout'] };
    assert.deepEqual(parseArguments(args), { kind: 'control', options: chosen });
    assert.deepEqual(parseArguments(['control', '-h']), { kind: 'help' });
  });

  test('a propagation benchmark has options of its own', () => {
    const options = { services: [10, 10_000], changes: 200, sources: ['memory', 'api'], isByDefault: true };
    assert.deepEqual(parseArguments(['propagation']), { kind: 'propagation', options });
    const args = ['propagation', '--services', '5', '--changes=3', '--source', 'memory'];
    const chosen = { services: [5], changes: 3, sources: ['memory'], isByDefault: false };
    assert.deepEqual(parseArguments(args), { kind: 'propagation', options: chosen });
  });

  test('help is asked for with or without a benchmark', () => {
    assert.deepEqual(parseArguments(['--help']), { kind: 'help' });
    assert.deepEqual(parseArguments(['l4', '-h']), { kind: 'help' });
  });

  const mistakes: readonly (readonly [string[], RegExp])[] = [
    [[], /^which benchmark\? There are: l4, fairness, control, propagation, start, soak$/],
    [['l7'], /^there is no benchmark "l7"; there are: l4, fairness, control, propagation, start, soak$/],
    [['l4', 'again'], /^"again" is too much$/],
    [['l4', '--fast'], /^Unknown option '--fast'$/],
    [['l4', '--pairs'], /^Option '--pairs <value>' argument missing$/],
    [['l4', '--pairs', '0'], /^--pairs is "0"; use a whole number from 1 to 100$/],
    [['l4', '--seconds', '1.5'], /^--seconds is "1.5"; use a whole number from 1 to 30$/],
    [
      ['l4', '--subjects', 'weir,traefik'],
      /^--subjects names "traefik"; use some of weir, haproxy, nginx, envoy, pipe$/,
    ],
    [['l4', '--only', 'speed'], /^--only names "speed"; use some of requests, connections, stream, udp, latency, /],
    [['fairness', '--only', 'udp'], /^--only is of l4, and fairness has none$/],
    [['soak', '--pairs', '3'], /^Unknown option '--pairs'$/],
    [['control', '--services', '100,many'], /^--services is "many"; use a whole number from 1 to 10000$/],
    [['control', '--followers', '0'], /^--followers is "0"; use a whole number from 1 to 200$/],
    [['control', '--only', 'udp'], /^--only names "udp"; use some of start, endpoint, service, rollout, tenants$/],
    [['propagation', '--changes', '0'], /^--changes is "0"; use a whole number from 1 to 10000$/],
    [['propagation', '--source', 'directory'], /^--source names "directory"; use some of memory, api$/],
    [['soak', 'long'], /^"long" is too much$/],
    [['soak', '--minutes', '0'], /^--minutes is "0"; use a number from 0.1 to 240$/],
    [['soak', '--workers', '1.5'], /^--workers is "1.5"; use a whole number from 1 to 16$/],
    [['fairness', '--profile', 'x'], /^--profile is of l4, and fairness has none$/],
  ];
  for (const [args, message] of mistakes) {
    test(`"${args.join(' ')}" is refused in one sentence`, () => {
      const command = parseArguments(args);
      assert.ok(command.kind === 'wrong');
      assert.match(command.message, message);
    });
  }
});
