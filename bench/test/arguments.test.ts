import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { parseArguments } from '../src/arguments.ts';

describe('arguments', () => {
  test('the name of the benchmark is enough', () => {
    const options = { pairs: 10, seconds: 2, subjects: ['weir', 'haproxy'] };
    assert.deepEqual(parseArguments(['l4']), { kind: 'l4', options });
  });

  test('every option has its say', () => {
    const args = ['l4', '--pairs', '20', '--seconds=5', '--subjects', 'pipe, weir,pipe', '--profile', 'out'];
    const options = { pairs: 20, seconds: 5, subjects: ['pipe', 'weir'], profile: 'out' };
    assert.deepEqual(parseArguments(args), { kind: 'l4', options });
  });

  test('help is asked for with or without a benchmark', () => {
    assert.deepEqual(parseArguments(['--help']), { kind: 'help' });
    assert.deepEqual(parseArguments(['l4', '-h']), { kind: 'help' });
  });

  const mistakes: readonly (readonly [string[], RegExp])[] = [
    [[], /^which benchmark\? There is one: l4$/],
    [['l7'], /^there is no benchmark "l7"; there is one: l4$/],
    [['l4', 'again'], /^"again" is too much$/],
    [['l4', '--fast'], /^Unknown option '--fast'$/],
    [['l4', '--pairs'], /^Option '--pairs <value>' argument missing$/],
    [['l4', '--pairs', '0'], /^--pairs is "0"; use a whole number from 1 to 100$/],
    [['l4', '--seconds', '1.5'], /^--seconds is "1.5"; use a whole number from 1 to 30$/],
    [['l4', '--subjects', 'weir,envoy'], /^--subjects names "envoy"; use some of weir, haproxy, pipe$/],
  ];
  for (const [args, message] of mistakes) {
    test(`"${args.join(' ')}" is refused in one sentence`, () => {
      const command = parseArguments(args);
      assert.ok(command.kind === 'wrong');
      assert.match(command.message, message);
    });
  }
});
