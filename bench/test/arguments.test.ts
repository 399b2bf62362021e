import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { parseArguments } from '../src/arguments.ts';

describe('parseArguments', () => {
  test('applies defaults to l4, l7 and fairness', () => {
    const common = { rounds: 10, seconds: 2, usesDefaultSubjects: true };
    const l4 = { ...common, subjects: ['weir', 'haproxy', 'nginx', 'envoy'] };
    assert.deepEqual(parseArguments(['l4']), { kind: 'l4', options: l4 });
    const l7 = { ...common, subjects: ['weir', 'haproxy', 'nginx', 'envoy', 'http-proxy'] };
    assert.deepEqual(parseArguments(['l7']), { kind: 'l7', options: l7 });
    const fairness = { ...common, subjects: ['weir', 'haproxy'] };
    assert.deepEqual(parseArguments(['fairness']), { kind: 'fairness', options: fairness });
  });

  test('parses every option of l4', () => {
    const args = ['l4', '--rounds', '20', '--seconds=5', '--subjects', 'pipe, weir,pipe', '--profile', 'out'];
    const options = {
      rounds: 20,
      seconds: 5,
      subjects: ['weir', 'pipe'],
      usesDefaultSubjects: false,
      profileDirectory: 'out',
    };
    assert.deepEqual(parseArguments(args), { kind: 'l4', options });
  });

  test('applies defaults to cost, and parses its options', () => {
    assert.deepEqual(parseArguments(['cost']), { kind: 'cost', options: { rounds: 12, seconds: 6 } });
    const options = { rounds: 2, seconds: 1, scenarios: ['requests', 'udp'], profileDirectory: 'out' };
    const args = ['cost', '--rounds=2', '--seconds', '1', '--scenarios', 'udp,requests', '--profile=out'];
    assert.deepEqual(parseArguments(args), { kind: 'cost', options });
  });

  test('applies defaults to cutoff, and parses its options', () => {
    const defaults = { proxies: 10, connections: 10_000, rounds: 3 };
    assert.deepEqual(parseArguments(['cutoff']), { kind: 'cutoff', options: defaults });
    const args = ['cutoff', '--proxies=2', '--connections', '500', '--rounds=1', '--scenarios', 'local,suspend'];
    const options = { proxies: 2, connections: 500, rounds: 1, scenarios: ['suspend', 'local'] };
    assert.deepEqual(parseArguments(args), { kind: 'cutoff', options });
  });

  test('parses every option of l7', () => {
    const args = [
      'l7',
      '--rounds=3',
      '--subjects',
      'http-proxy,weir',
      '--scenarios',
      'http2,bodies',
      '--profile',
      'out',
    ];
    const options = {
      rounds: 3,
      seconds: 2,
      subjects: ['weir', 'http-proxy'],
      usesDefaultSubjects: false,
      scenarios: ['bodies', 'http2'],
      profileDirectory: 'out',
    };
    assert.deepEqual(parseArguments(args), { kind: 'l7', options });
  });

  test('orders selected scenarios as they run', () => {
    const command = parseArguments(['l4', '--scenarios', 'memory, requests,memory']);
    assert.ok(command.kind === 'l4');
    assert.deepEqual(command.options.scenarios, ['requests', 'memory']);
  });

  test('parses the options of limits', () => {
    const subjects = ['weir', 'haproxy', 'envoy'];
    assert.deepEqual(parseArguments(['limits']), { kind: 'limits', options: { subjects, seed: 1 } });
    const command = parseArguments(['limits', '--subjects', 'envoy,weir', '--seed=3']);
    assert.deepEqual(command, { kind: 'limits', options: { subjects: ['weir', 'envoy'], seed: 3 } });
  });

  test('applies defaults to leases, and parses its options', () => {
    const defaults = { proxies: 1_000, tenants: 10_000, seconds: 60, rounds: 4 };
    assert.deepEqual(parseArguments(['leases']), { kind: 'leases', options: defaults });
    const command = parseArguments(['leases', '--proxies', '8', '--tenants=20', '--seconds', '30', '--rounds=1']);
    const options = { proxies: 8, tenants: 20, seconds: 30, rounds: 1 };
    assert.deepEqual(command, { kind: 'leases', options });
  });

  test('parses the options of soak', () => {
    assert.deepEqual(parseArguments(['soak']), { kind: 'soak', options: { minutes: 10, seed: 1, workers: 2 } });
    const args = ['soak', '--minutes', '0.2', '--seed=7', '--workers', '4'];
    assert.deepEqual(parseArguments(args), { kind: 'soak', options: { minutes: 0.2, seed: 7, workers: 4 } });
    assert.deepEqual(parseArguments(['soak', '--help']), { kind: 'help' });
  });

  test('parses the options of control', () => {
    const options = { services: [10, 100, 1_000, 10_000], followers: 100, rounds: 100 };
    assert.deepEqual(parseArguments(['control']), { kind: 'control', options });
    const args = [
      'control',
      '--services',
      '50, 20,50',
      '--followers=3',
      '--rounds',
      '5',
      '--scenarios',
      'rollout,start',
    ];
    const chosen = { services: [20, 50], followers: 3, rounds: 5, scenarios: ['start', 'rollout'] };
    assert.deepEqual(parseArguments(args), { kind: 'control', options: chosen });
    assert.deepEqual(parseArguments(['control', '-h']), { kind: 'help' });
  });

  test('parses the options of hostile', () => {
    assert.deepEqual(parseArguments(['hostile']), { kind: 'hostile', options: { rounds: 5, seconds: 4 } });
    const args = ['hostile', '--rounds', '2', '--seconds=10', '--scenarios', 'handshakes-rsa,handshakes'];
    const chosen = { rounds: 2, seconds: 10, scenarios: ['handshakes', 'handshakes-rsa'] };
    assert.deepEqual(parseArguments(args), { kind: 'hostile', options: chosen });
    assert.deepEqual(parseArguments(['hostile', '--help']), { kind: 'help' });
  });

  test('parses the options of propagation', () => {
    const options = { services: [10, 10_000], changes: 200, sources: ['memory', 'api'], usesDefaultSources: true };
    assert.deepEqual(parseArguments(['propagation']), { kind: 'propagation', options });
    const args = ['propagation', '--services', '5', '--changes=3', '--source', 'memory'];
    const chosen = { services: [5], changes: 3, sources: ['memory'], usesDefaultSources: false };
    assert.deepEqual(parseArguments(args), { kind: 'propagation', options: chosen });
  });

  test('accepts --help with and without a benchmark', () => {
    assert.deepEqual(parseArguments(['--help']), { kind: 'help' });
    assert.deepEqual(parseArguments(['l4', '-h']), { kind: 'help' });
  });

  const mistakes: readonly (readonly [string[], RegExp])[] = [
    [
      [],
      /^missing name of a benchmark: expected one of l4, l7, cost, fairness, hostile, control, propagation, cutoff, limits, leases, start, soak$/,
    ],
    [
      ['l5'],
      /^invalid benchmark "l5": expected one of l4, l7, cost, fairness, hostile, control, propagation, cutoff, limits, leases, start, soak$/,
    ],
    [['l4', 'again'], /^unexpected argument "again"$/],
    [['l4', '--fast'], /^Unknown option '--fast'$/],
    [['l4', '--rounds'], /^Option '--rounds <value>' argument missing$/],
    [['l4', '--rounds', '0'], /^invalid --rounds "0": expected a whole number from 1 to 100$/],
    [['l4', '--seconds', '1.5'], /^invalid --seconds "1.5": expected a whole number from 1 to 30$/],
    [
      ['l4', '--subjects', 'weir,traefik'],
      /^invalid --subjects "traefik": expected names out of weir, haproxy, nginx, envoy, pipe$/,
    ],
    [
      ['l4', '--scenarios', 'speed'],
      /^invalid --scenarios "speed": expected names out of requests, connections, stream, udp, udp-stream, latency, /,
    ],
    [
      ['l7', '--subjects', 'pipe'],
      /^invalid --subjects "pipe": expected names out of weir, haproxy, nginx, envoy, http-proxy$/,
    ],
    [
      ['l7', '--scenarios', 'udp'],
      /^invalid --scenarios "udp": expected names out of requests, connections, routes, bodies, handshakes, http2, grpc, latency$/,
    ],
    [['cost', '--subjects', 'weir'], /^Unknown option '--subjects'$/],
    [
      ['cost', '--scenarios', 'grpc'],
      /^invalid --scenarios "grpc": expected names out of requests, connections, stream, http, udp$/,
    ],
    [['fairness', '--scenarios', 'udp'], /^Unknown option '--scenarios'$/],
    [['hostile', '--seconds', '1'], /^invalid --seconds "1": expected a whole number from 2 to 60$/],
    [['soak', '--rounds', '3'], /^Unknown option '--rounds'$/],
    [['control', '--services', '100,many'], /^invalid --services "many": expected a whole number from 1 to 10000$/],
    [['control', '--followers', '0'], /^invalid --followers "0": expected a whole number from 1 to 200$/],
    [
      ['control', '--scenarios', 'udp'],
      /^invalid --scenarios "udp": expected names out of start, endpoint, service, rollout, tenants$/,
    ],
    [['propagation', '--changes', '0'], /^invalid --changes "0": expected a whole number from 1 to 10000$/],
    [['propagation', '--source', 'directory'], /^invalid --source "directory": expected names out of memory, api$/],
    [['soak', 'long'], /^unexpected argument "long"$/],
    [['soak', '--minutes', '0'], /^invalid --minutes "0": expected a number from 0.1 to 240$/],
    [['soak', '--workers', '1.5'], /^invalid --workers "1.5": expected a whole number from 1 to 16$/],
    [['fairness', '--profile', 'x'], /^Unknown option '--profile'$/],
  ];
  for (const [args, message] of mistakes) {
    test(`rejects "${args.join(' ')}"`, () => {
      const command = parseArguments(args);
      assert.ok(command.kind === 'invalid');
      assert.match(command.message, message);
    });
  }
});
