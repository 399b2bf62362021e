// Tests one scenario per reason. `scenarios/REASON.yaml` contains the steps and their objects. `scenarios/REASON.golden.txt` contains the
// resulting status and Events of the Service and the output of `weir explain`.
import assert from 'node:assert/strict';
import { readdirSync, readFileSync } from 'node:fs';
import { describe, test } from 'node:test';
import { DEGRADED_REASONS, PROGRAMMED_REASONS, type Problem, REFUSAL_REASONS, SUSPENDED_REASONS } from '@weir/model';
import { golden } from '@weir/testkit';
import { parseScenario } from './scenario.ts';
import { type StepResult, startScenarioRunner } from './scenario-runner.ts';

/** A set, because two conditions may have the same reason. */
const REASONS: ReadonlySet<string> = new Set([
  'Accepted',
  ...REFUSAL_REASONS,
  ...PROGRAMMED_REASONS,
  ...DEGRADED_REASONS,
  ...SUSPENDED_REASONS,
]);
const SCENARIOS = new URL('scenarios/', import.meta.url);
const MAX_MESSAGE_BYTES = 1_024;

describe('reasons', () => {
  for (const reason of REASONS) {
    test(`${reason} appears in status, Events and weir explain`, async () => {
      const { steps, ...fleet } = parseScenario(readFileSync(new URL(`${reason}.yaml`, SCENARIOS), 'utf8'));
      await using runner = await startScenarioRunner(fleet);
      const texts: string[] = [];
      let last: StepResult | undefined;
      for (const step of steps) {
        last = await runner.runStep(step);
        texts.push(`# ${step.title}\n${resultText(last)}`);
      }
      assert.ok(last !== undefined, 'the scenario has no steps');
      const conditions = last.status.conditions ?? [];
      const reasons = conditions.map((condition) => condition.reason);
      assert.ok(reasons.includes(reason), `the reasons after the last step are ${reasons.join(', ')}`);
      for (const { type, status, reason: code, message } of conditions) {
        assert.ok(Buffer.byteLength(message) <= MAX_MESSAGE_BYTES, message);
        // `weir explain` asks the console, and only the controller reads the status that other controllers write.
        const isExplained: boolean = code === 'ForeignController' || last.explanation.includes(`(${code}): ${message}`);
        assert.ok(isExplained, `weir explain lacks the message: ${message}`);
        if (type !== 'weir.dev/Accepted' || status === 'True') continue;
        const problem: Problem | undefined = last.problems.find((each) => each.code === code);
        assert.equal(problem?.message, message, 'the problem has the same message');
      }
      for (const { note } of last.events) assert.ok(Buffer.byteLength(note) <= MAX_MESSAGE_BYTES, note);
      golden(new URL(`${reason}.golden.txt`, SCENARIOS), `${texts.join('\n')}\n# weir explain\n${last.explanation}`);
    });
  }

  test('scenarios/ contains only scenarios of existing reasons', () => {
    const known = [...REASONS].flatMap((reason) => [`${reason}.golden.txt`, `${reason}.yaml`]);
    assert.deepEqual(readdirSync(SCENARIOS).sort(), known.sort());
  });
});

function resultText({ status, events, problems }: StepResult): string {
  const conditions = [...(status.conditions ?? [])].sort((a, b) => (a.type < b.type ? -1 : 1));
  const addresses = (status.loadBalancer?.ingress ?? []).map(({ ip, ipMode, ports }) => {
    const texts = ports.map(
      ({ port, protocol, error }) => `${port}/${protocol}${error === undefined ? '' : ` ${error}`}`,
    );
    return `${ip} (${ipMode}): ${texts.join(', ')}`;
  });
  return [
    ...conditions.map(({ type, status, reason, message }) => `${type} ${status} ${reason}: ${message}`),
    ...section('Addresses', addresses),
    ...section(
      'Events',
      events.map(({ type, reason, note }) => `${type} ${reason}: ${note}`),
    ),
    ...section(
      'Problems',
      problems.map(({ severity, heals, code, message }) => `${severity}${heals ? ' (heals)' : ''} ${code}: ${message}`),
    ),
    '',
  ].join('\n');
}

function section(title: string, lines: readonly string[]): string[] {
  return [title, ...(lines.length === 0 ? ['  none'] : lines.map((line) => `  ${line}`))];
}
