import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { findingsText } from '../../src/commands/doctor.ts';
import { diagnose } from '../../src/doctor/diagnose.ts';
import { CHECK_CODES } from '../../src/doctor/finding.ts';
import { FAILED, healthyFacts, NOT_ASKED, node } from '../fixtures/doctor-facts.ts';

test('diagnose reports every check as ok for healthy facts', () => {
  const findings = diagnose(healthyFacts());
  assert.deepEqual(
    findings.map(({ code }) => code),
    CHECK_CODES,
  );
  assert.deepEqual(
    findings.filter(({ severity }) => severity !== 'ok'),
    [],
  );
});

const NOTHING = {
  customResources: FAILED,
  serviceRanges: FAILED,
  leases: FAILED,
  nodes: FAILED,
  services: FAILED,
  policies: FAILED,
};

test('diagnose reports an unreachable API server as one error and its checks as not checked', () => {
  const findings = diagnose(healthyFacts({ server: FAILED, ...NOTHING }));
  assert.deepEqual(
    findings.filter(({ severity }) => severity === 'error').map(({ code, message }) => `${code}: ${message}`),
    ['KubernetesVersion: not checked: it does not answer'],
  );
  const unchecked = findings.filter(({ message }) => message.startsWith('not checked')).map(({ code }) => code);
  assert.deepEqual(unchecked, CHECK_CODES.slice(0, CHECK_CODES.indexOf('RedisReachable')));
});

test('diagnose reports an unreachable Redis as one error and still checks the cluster', () => {
  const findings = diagnose(healthyFacts({ redis: FAILED, heartbeats: FAILED }));
  const errors = findings.filter(({ severity }) => severity === 'error').map(({ code }) => code);
  assert.deepEqual(errors, ['RedisReachable']);
  const fine = findings.filter(({ severity }) => severity === 'ok').map(({ code }) => code);
  assert.deepEqual(fine, CHECK_CODES.slice(0, CHECK_CODES.indexOf('RedisReachable')));
});

test('diagnose reports a Redis that is not configured as not checked, without an error', () => {
  const findings = diagnose(healthyFacts({ redis: NOT_ASKED, heartbeats: NOT_ASKED }));
  assert.deepEqual(
    findings.filter(({ severity }) => severity === 'error'),
    [],
  );
  assert.match(
    findings.find(({ code }) => code === 'RedisReachable')?.message ?? '',
    /^not checked: no Redis is configured/,
  );
});

test('findingsText prints one line per check without control characters, and a summary', () => {
  const nodes = { kind: 'known', value: [node('evil\u001b[2J\nnode', '10.0.0.1')] } as const;
  const text = findingsText(diagnose(healthyFacts({ nodes })), false);
  const lines = text.trimEnd().split('\n');
  assert.equal(lines.length, CHECK_CODES.length + 2);
  assert.match(lines[0] ?? '', /^ok {7}KubernetesVersion {5}API server https:\/\/10\.0\.0\.1:6443: v1\.36\.2 is/);
  assert.match(text, /^warning {2}LoadBalancingNodes {4}Nodes: only evil\[2J node is usable/m);
  assert.match(lines.at(-1) ?? '', /^25 checks: \d+ ok, \d+ warning, \d+ error$/);
});

test('docs/troubleshooting.md lists exactly the checks of weir doctor', () => {
  const page = readFileSync(fileURLToPath(new URL('../../../../docs/troubleshooting.md', import.meta.url)), 'utf8');
  const [, section = ''] = page.split('\n## weir doctor\n');
  const rows = (section.split('\n## ')[0] ?? '').matchAll(/^\| (`[^|]+)\|/gm);
  const listed = [...rows].flatMap(([, cell = '']) => [...cell.matchAll(/`(\w+)`/g)].map(([, code]) => code));
  assert.deepEqual(listed, [...CHECK_CODES]);
});
