import assert from 'node:assert/strict';
import { test } from 'node:test';
import { parse } from 'yaml';
import { endpointSlice, manifestDirectory, service, tenantPolicy } from './fixtures/manifests.ts';
import { runWeirOnTerminal } from './fixtures/weir-in-process.ts';
import { runWeirProcess } from './fixtures/weir-process.ts';

test('prints the table, a status for each Service and no problems for valid manifests', async () => {
  await using files = manifestDirectory();
  files.write('shop.yaml', service('web'), endpointSlice('web', 18_080));
  const { code, json } = await runWeirProcess(['translate', '-f', files.path, '-o', 'json']);
  assert.equal(code, 0);
  assert.deepEqual(Object.keys(json), ['table', 'statuses', 'problems', 'ignored', 'services']);
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

test('prints the same data as YAML and as JSON', async () => {
  await using files = manifestDirectory();
  files.write('shop.yaml', service('web'), endpointSlice('web', 18_080));
  const [asJson, asYaml] = await Promise.all(
    ['json', 'yaml'].map((format) => runWeirProcess(['translate', '-f', files.path, '-o', format])),
  );
  assert.deepEqual(parse(asYaml?.stdout ?? ''), asJson?.json);
});

test('exits with 1 for an error and with 0 for a warning', async () => {
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

test('refuses a Service without hosts on a port of --shared-ports', async () => {
  await using files = manifestDirectory();
  files.write('shop.yaml', service('web'), endpointSlice('web', 18_080));
  const refused = await runWeirProcess(['translate', '-f', files.path, '--shared-ports', '8080, 443', '-o', 'json']);
  assert.equal(refused.code, 1);
  assert.deepEqual(codesOf(refused.json.problems), [['error', 'PortReserved']]);
});

test('refuses a Service on a port of --reserved-ports', async () => {
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

test('does not count an excluded node as usable', async () => {
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

test('names file and line of an invalid document and reads the other documents', async () => {
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

test('counts objects of kinds that Weir does not read', async () => {
  await using files = manifestDirectory();
  const deployment = (name: string): unknown => ({ apiVersion: 'apps/v1', kind: 'Deployment', metadata: { name } });
  files.write('shop.yaml', service('web'), endpointSlice('web', 1), deployment('a'), deployment('b'));
  assert.deepEqual((await runWeirProcess(['translate', '-f', files.path, '-o', 'json'])).json.ignored, {
    Deployment: 2,
  });
  assert.match((await runWeirProcess(['translate', '-f', files.path])).stdout, /Ignored objects .*: 2 Deployment/);
});

test('suggests --classless if no Service has the class, and accepts the Services with it', async () => {
  await using files = manifestDirectory();
  files.write('shop.yaml', service('web', { loadBalancerClass: null }), endpointSlice('web', 1));
  const without = await runWeirProcess(['translate', '-f', files.path]);
  assert.match(without.output, /--classless/);
  const taken = await runWeirProcess(['translate', '-f', files.path, '--classless', '-o', 'json']);
  assert.equal(taken.code, 0);
  assert.equal(taken.json.statuses.length, 1);
});

test('places Services on the nodes of --node', async () => {
  await using files = manifestDirectory();
  files.write('shop.yaml', service('web'), endpointSlice('web', 1));
  const nodes = ['--node', 'a=127.0.0.2', '--node', 'b=127.0.0.3'];
  const { json } = await runWeirProcess(['translate', '-f', files.path, ...nodes, '-o', 'json']);
  assert.deepEqual(
    json.table.nodes.map((node: { name: string }) => node.name),
    ['a', 'b'],
  );
});

test('prints a line per Service and a line per problem with its remedy', async () => {
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

test('ends with a line that counts the Services', async () => {
  await using files = manifestDirectory();
  const classless = ['a', 'b'].map((name) => service(name, { loadBalancerClass: null }));
  files.write(
    'shop.yaml',
    ...classless,
    service('web'),
    endpointSlice('web', 18_080),
    service('idle', { port: 81 }),
    service('ssh', { port: 22 }),
    service('typo', { loadBalancerClass: 'weir.dev/wier' }),
  );
  files.writeText(
    'bad.yaml',
    'apiVersion: v1\nkind: Service\nmetadata: {name: bad}\nspec: {loadBalancerSourceRange: [], ports: [{port: 80}]}\n',
  );
  const { stdout, code } = await runWeirProcess(['translate', '-f', files.path]);
  assert.equal(code, 1);
  assert.match(stdout, /^shop\/ssh +shop +PortReserved +22\/TCP \(PortReserved\)/m);
  assert.match(
    stdout,
    /^error: Service default\/bad: InvalidObject: spec\.loadBalancerSourceRange is unknown; did you mean/m,
  );
  assert.match(
    stdout,
    /^warning: Fleet: NoServices: .*\(shop\/typo: "weir\.dev\/wier"\).*did you mean weir\.dev\/weir\?$/m,
  );
  assert.equal(
    stdout.split('\n').at(-2),
    '7 Services: 2 served (1 without a ready endpoint), 1 refused, 1 invalid, 1 names another class (weir.dev/wier), 2 name no class: add --classless',
  );
});

test('asks whether a misspelled annotation means a known annotation', async () => {
  await using files = manifestDirectory();
  files.write('shop.yaml', service('web', { annotations: { 'weir.dev/max-conections': '10' } }));
  const { json } = await runWeirProcess(['translate', '-f', files.path, '-o', 'json']);
  assert.equal(
    json.problems[0].message,
    'annotation weir.dev/max-conections cannot be honoured: did you mean weir.dev/max-connections?',
  );
});

test('reads manifests from standard input with -f -', async () => {
  const input = JSON.stringify({ apiVersion: 'v1', kind: 'List', items: [service('web'), endpointSlice('web', 1)] });
  const { code, stdout } = await runWeirOnTerminal({ input }, ['translate', '-f', '-']);
  assert.equal(code, 0, stdout);
  assert.match(stdout, /^shop\/web +shop +Accepted/m);
});

test('exits with 2 and one line if the directory does not exist', async () => {
  const { code, output } = await runWeirProcess(['translate', '-f', '/nowhere/at/all']);
  assert.equal(code, 2);
  assert.match(output, /^weir: -f \/nowhere\/at\/all: does not exist; name a file or directory of manifests\n$/);
});

function codesOf(problems: readonly { severity: string; code: string }[]): string[][] {
  return problems.map(({ severity, code }) => [severity, code]);
}
