// Tests that the chart and the manual give each Redis user the same permissions. The store package defines the permissions, and its tests
// check that they are minimal.
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { describe, test } from 'node:test';
import { requireProgram } from '@weir/tools';
import { INSTALLATIONS, renderManifests } from '../../src/chart/helm.ts';

const page = readFileSync(new URL('../../../docs/redis.md', import.meta.url), 'utf8');

describe('the bundled Redis', requireProgram('helm'), () => {
  test('has exactly the users and permissions of the manual', async () => {
    const installation = INSTALLATIONS.find(({ name }) => name === 'default');
    assert.ok(installation);
    const secrets = (await renderManifests(installation)).filter(({ kind }) => kind === 'Secret');
    const file = secrets.flatMap((secret) => usersIn(secret as unknown as Secret))[0] ?? '';
    const users = file.split('\n').filter((line) => line !== '');
    assert.ok(users.includes('user default off'), file);
    const [, fleet = ''] = /~weir:\{([^}]+)\}:\*/.exec(file) ?? [];
    const inManual = (page.match(/^ACL SETUSER .*$/gm) ?? []).map((line) =>
      line.replace('ACL SETUSER', 'user').replace('>PASSWORD', 'PASSWORD').replaceAll('{weir}', `{${fleet}}`),
    );
    const probe = 'user weir-probe on nopass -@all +ping';
    assert.ok(users.includes(probe), file);
    const inChart = users.filter((line) => line !== 'user default off' && line !== probe);
    assert.deepEqual(inChart.map((line) => line.replace(/ #[0-9a-f]{64} /, ' PASSWORD ')).sort(), inManual.sort());
  });
});

interface Secret {
  readonly stringData?: Readonly<Record<string, string>>;
  readonly data?: Readonly<Record<string, string>>;
}

function usersIn({ stringData = {}, data = {} }: Secret): readonly string[] {
  const encoded = data['users.acl'];
  const text =
    stringData['users.acl'] ?? (encoded === undefined ? undefined : Buffer.from(encoded, 'base64').toString());
  return text === undefined ? [] : [text];
}
