import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { eventually } from '@weir/testkit';
import { requireProgram } from '@weir/tools';
import { type ChartRelease, type CommandResult, startChartRelease } from '../../fixtures/chart-release.ts';

const CONSOLE = 'system:serviceaccount:weir-system:weir-console';
const CONTROLLER = 'system:serviceaccount:weir-system:weir-controller';
const RULE = 'egress: 1.4 Gbit/s for 5m, above 1 Gbit/s';
/** The API server needs a moment to load a policy, and up to half a minute to check its types on a busy machine. */
const IN_FORCE = { timeoutMs: 120_000 };

const suspension = (name: string, { madeBy = '', rule = '', message = 'Stop.' } = {}): object => ({
  apiVersion: 'weir.dev/v1alpha1',
  kind: 'Suspension',
  metadata: { name, ...(madeBy !== '' && { annotations: { 'weir.dev/made-by': madeBy } }) },
  spec: { target: { type: 'Tenant', tenant: 'game' }, message, ...(rule !== '' && { rule }) },
});

describe('the admission policies for Suspensions', requireProgram('kubernetes', 'helm'), () => {
  let release: ChartRelease;
  before(async () => {
    release = await startChartRelease();
    const { kubectl } = release.plane;
    await release.install('admission.nodePorts=Warn');
    await kubectl('create', 'clusterrole', 'stop', '--verb=get,create,update,patch', '--resource=suspensions.weir.dev');
    await kubectl('create', 'clusterrolebinding', 'stop', '--clusterrole=stop', '--user=alice', '--user=bob');
    await eventually(async () => {
      const { text } = await create(suspension('probe'), 'alice', '--dry-run=server', '-o', 'yaml');
      assert.match(text, /made-by: alice/);
      const forged = await create(suspension('probe', { rule: RULE }), 'alice', '--dry-run=server');
      assert.match(forged.text, /denied request/);
    }, IN_FORCE);
  });
  after(() => release?.[Symbol.asyncDispose]());

  const create = (object: object, by: string, ...flags: string[]): Promise<CommandResult> =>
    release.apply(object, { by, flags: ['--server-side', '--force-conflicts', ...flags] });
  const authorOf = async (name: string): Promise<string | undefined> => {
    const object = JSON.parse(await release.plane.kubectl('get', 'suspension', name, '-o', 'json'));
    return object.metadata.annotations?.['weir.dev/made-by'];
  };
  const succeeds = async (result: Promise<CommandResult>): Promise<void> => {
    const { ok, text } = await result;
    assert.ok(ok, text);
    assert.doesNotMatch(text, /Warning/);
  };

  test('name the user who creates a Suspension, and keep the name when another user edits it', async () => {
    await succeeds(create(suspension('first'), 'alice'));
    assert.equal(await authorOf('first'), 'alice');
    assert.match(await release.plane.kubectl('get', 'suspension', 'first'), /MADE BY[^\n]*\n.* alice /);
    await succeeds(create(suspension('first', { message: 'Stop now.' }), 'bob'));
    await succeeds(release.kubectl('annotate', 'suspension', 'first', 'weir.dev/made-by-', '--as=bob'));
    assert.equal(await authorOf('first'), 'alice');
  });

  test('refuse a Suspension in the name of another user or of a rule', async () => {
    const named = await create(suspension('forged', { madeBy: 'bob' }), 'alice');
    assert.equal(named.ok, false);
    assert.match(named.text, /made-by names "bob", but user "alice" creates the Suspension; remove the annotation/);
    const ruled = await create(suspension('forged', { rule: RULE }), 'alice');
    assert.equal(ruled.ok, false);
    assert.match(ruled.text, /only Weir may set it/);
    await succeeds(create(suspension('own', { madeBy: 'alice' }), 'alice'));
    const renamed = await release.kubectl(
      'annotate',
      'suspension',
      'own',
      'weir.dev/made-by=bob',
      '--overwrite',
      '--as=bob',
    );
    assert.equal(renamed.ok, false);
    assert.match(renamed.text, /made-by says who made the Suspension, and must stay "alice"/);
  });

  test('let console and controller name the user or the rule for which they act', async () => {
    await succeeds(create(suspension('console', { madeBy: 'carol' }), CONSOLE));
    assert.equal(await authorOf('console'), 'carol');
    await succeeds(create(suspension('console', { madeBy: 'dora' }), CONSOLE));
    assert.equal(await authorOf('console'), 'dora');
    await succeeds(create(suspension('anonymous'), CONSOLE));
    assert.equal(await authorOf('anonymous'), undefined);
    const file = JSON.stringify(suspension('rule', { rule: RULE }));
    await release.plane.kubectl('create', '-f', '-', '--as', CONTROLLER, { stdin: file });
    assert.equal(await authorOf('rule'), undefined);
  });
});
