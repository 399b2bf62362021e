import assert from 'node:assert/strict';
import { test } from 'node:test';
import { parse } from 'yaml';
import { endpointSlice, manifestDirectory, service, tenantPolicy } from './fixtures/manifests.ts';
import { runWeirProcess } from './fixtures/weir-process.ts';

test('good manifests become a table, a status for each Service, and no problem', async () => {
  await using files = manifestDirectory();
  files.write('shop.yaml', service('web'), endpointSlice('web', 18_080));
  const { code, json } = await runWeirProcess(['translate', '-f', files.path, '-o', 'json']);
  assert.equal(code, 0);
  assert.deepEqual(Object.keys(json), ['table', 'statuses', 'problems', 'ignored']);
  assert.deepEqual(json.problems, []);
  assert.deepEqual(
    json.statuses.map((status: { name: string; accepted: { reason: string } }) => [
      status.name,
      status.accepted.reason,
    ]),
    [['web', 'Accepted']],
  );
  const [listener] = json.table.listeners;
  assert.deepEqual(
    [listener.node, listener.address, listener.port, listener.protocol],
    ['local', '127.0.0.1', 8080, 'TCP'],
  );
  assert.deepEqual(json.table.endpoints[0].endpoints, [{ address: '127.0.0.1', port: 18_080 }]);
});

test('yaml says the same as json', async () => {
  await using files = manifestDirectory();
  files.write('shop.yaml', service('web'), endpointSlice('web', 18_080));
  const [asJson, asYaml] = await Promise.all(
    ['json', 'yaml'].map((format) => runWeirProcess(['translate', '-f', files.path, '-o', format])),
  );
  assert.deepEqual(parse(asYaml?.stdout ?? ''), asJson?.json);
});

test('an error is exit code 1, a warning is not', async () => {
  await using files = manifestDirectory();
  files.write('shop.yaml', service('web'));
  const warned = await runWeirProcess(['translate', '-f', files.path, '-o', 'json']);
  assert.equal(warned.code, 0);
  assert.deepEqual(codesOf(warned.json.problems), [['warning', 'NoReadyEndpoints']]);
  files.write('policy.yaml', tenantPolicy('shop', { services: 0 }));
  const refused = await runWeirProcess(['translate', '-f', files.path, '-o', 'json']);
  assert.equal(refused.code, 1);
  assert.deepEqual(codesOf(refused.json.problems), [['error', 'QuotaExceeded']]);
});

test('ports that are shared are those of the option', async () => {
  await using files = manifestDirectory();
  files.write('shop.yaml', service('web'), endpointSlice('web', 18_080));
  const refused = await runWeirProcess(['translate', '-f', files.path, '--shared-ports', '8080, 443', '-o', 'json']);
  assert.equal(refused.code, 1);
  assert.deepEqual(codesOf(refused.json.problems), [['error', 'PortReserved']]);
});

test('ports that the nodes need are those of the option, too', async () => {
  await using files = manifestDirectory();
  files.write('shop.yaml', service('web'), endpointSlice('web', 18_080));
  const refused = await runWeirProcess([
    'translate',
    '-f',
    files.path,
    '--reserved-ports',
    '9100, 8000-8100',
    '-o',
    'json',
  ]);
  assert.equal(refused.code, 1);
  assert.deepEqual(codesOf(refused.json.problems), [['error', 'PortReserved']]);
});

test('a node that is kept out is not one of those that a Service could be on', async () => {
  await using files = manifestDirectory();
  const node = (name: string, address: string, labels: object = {}): object => ({
    apiVersion: 'v1',
    kind: 'Node',
    metadata: { name, labels: { role: 'loadbalancer', ...labels } },
    status: { addresses: [{ type: 'InternalIP', address }] },
  });
  const excluded = { 'node.kubernetes.io/exclude-from-external-load-balancers': '' };
  files.write('nodes.yaml', node('a', '192.0.2.1'), node('b', '192.0.2.2', excluded));
  files.write('shop.yaml', service('web'), endpointSlice('web', 18_080));
  const { json } = await runWeirProcess(['translate', '-f', files.path, '-o', 'json']);
  assert.deepEqual(codesOf(json.problems), []);
});

test('a document that is wrong is named by file and line, and hides nothing else', async () => {
  await using files = manifestDirectory();
  files.write('good.yaml', service('web'), endpointSlice('web', 1));
  files.writeText('bad.yaml', 'kind: Service\n---\na: [1\n');
  const { code, json } = await runWeirProcess(['translate', '-f', files.path, '-o', 'json']);
  assert.equal(code, 1);
  assert.equal(json.statuses.length, 1);
  assert.match(
    json.problems.map((problem: { subject: string }) => problem.subject).join('\n'),
    /bad\.yaml:1\n.*bad\.yaml:\d/,
  );
});

test('kinds that Weir does not read are counted', async () => {
  await using files = manifestDirectory();
  const deployment = (name: string): unknown => ({ apiVersion: 'apps/v1', kind: 'Deployment', metadata: { name } });
  files.write('shop.yaml', service('web'), endpointSlice('web', 1), deployment('a'), deployment('b'));
  assert.deepEqual((await runWeirProcess(['translate', '-f', files.path, '-o', 'json'])).json.ignored, {
    Deployment: 2,
  });
  assert.match((await runWeirProcess(['translate', '-f', files.path])).stdout, /Ignored, .*: 2 Deployment/);
});

test('when no Service names the class, it says so and names --classless, which takes them', async () => {
  await using files = manifestDirectory();
  files.write('shop.yaml', service('web', { loadBalancerClass: null }), endpointSlice('web', 1));
  const without = await runWeirProcess(['translate', '-f', files.path]);
  assert.match(without.output, /--classless/);
  const taken = await runWeirProcess(['translate', '-f', files.path, '--classless', '-o', 'json']);
  assert.equal(taken.code, 0);
  assert.equal(taken.json.statuses.length, 1);
});

test('--node makes a fleet', async () => {
  await using files = manifestDirectory();
  files.write('shop.yaml', service('web'), endpointSlice('web', 1));
  const nodes = ['--node', 'a=127.0.0.2', '--node', 'b=127.0.0.3'];
  const { json } = await runWeirProcess(['translate', '-f', files.path, ...nodes, '-o', 'json']);
  assert.deepEqual(
    json.table.nodes.map((node: { name: string }) => node.name),
    ['a', 'b'],
  );
});

test('the table for people has a line per Service, and per problem with what to do', async () => {
  await using files = manifestDirectory();
  files.write(
    'shop.yaml',
    service('api'),
    endpointSlice('api', 1),
    service('web', { port: 81 }),
    endpointSlice('web', 2),
  );
  files.write('policy.yaml', tenantPolicy('shop', { services: 1 }));
  const { stdout, code } = await runWeirProcess(['translate', '-f', files.path]);
  assert.equal(code, 1);
  assert.match(stdout, /^shop\/api +shop +Accepted +8080\/TCP +local +1$/m);
  assert.match(stdout, /^shop\/web +shop +QuotaExceeded/m);
  assert.match(stdout, /^error: Service shop\/web: QuotaExceeded: 1 of 1 .*\(api\); delete one or ask/m);
});

test('a directory that is not there is one line and exit code 2', async () => {
  const { code, output } = await runWeirProcess(['translate', '-f', '/nowhere/at/all']);
  assert.equal(code, 2);
  assert.match(output, /^weir: -f \/nowhere\/at\/all: does not exist; name a file or directory of manifests\n$/);
});

function codesOf(problems: readonly { severity: string; code: string }[]): string[][] {
  return problems.map(({ severity, code }) => [severity, code]);
}
