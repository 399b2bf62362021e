import assert from 'node:assert/strict';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { DEFAULT_TABLE_BYTES } from '@weir/model';
import { temporaryDirectory } from '@weir/testkit';
import { loadDefaultPolicy, parseDefaultPolicy } from '../../src/config/default-policy.ts';
import { loadKubeConfig } from '../../src/kubernetes/kube-config.ts';

test('the default tenant policy may be a spec or a complete TenantPolicy', () => {
  const spec = 'limits: {services: 2}\ntenantFrom: {type: Label, label: team}\n';
  const { policy, problems } = parseDefaultPolicy('p.yaml', spec);
  assert.deepEqual(policy.limits, { tableBytes: DEFAULT_TABLE_BYTES, services: 2 });
  assert.deepEqual(policy.tenantFrom, { kind: 'label', label: 'team' });
  assert.deepEqual(problems, []);
  const complete = `apiVersion: weir.dev/v1alpha1\nkind: TenantPolicy\nspec:\n  ${spec.replace('\n', '\n  ')}`;
  assert.deepEqual(parseDefaultPolicy('p.yaml', complete).policy, policy);
  assert.deepEqual(parseDefaultPolicy('p.yaml', '').policy.limits, { tableBytes: DEFAULT_TABLE_BYTES });
});

test('reports all mistakes in the default tenant policy, also in its rules, and fields without effect', () => {
  assert.throws(
    () => parseDefaultPolicy('p.yaml', 'limits: {services: x}\nlimit: 3'),
    /^UsageError: default tenant policy p.yaml: limit is unknown; did you mean limits\?; limits.services is "x"; use a whole number/,
  );
  assert.throws(
    () => parseDefaultPolicy('p.yaml', 'rules: [{name: a, metric: requestsPerSecond, above: 80%, action: Notify}]'),
    /: rule "a" does not act: rules\[0\].above is "80%"; use a quantity/,
  );
  assert.throws(() => parseDefaultPolicy('p.yaml', 'a: b: c'), /p.yaml is not valid YAML/);
  assert.deepEqual(loadDefaultPolicy(undefined).policy.limits, { tableBytes: DEFAULT_TABLE_BYTES });
  assert.throws(() => loadDefaultPolicy('/nowhere/p.yaml'), /cannot read \/nowhere\/p.yaml/);
  assert.deepEqual(
    parseDefaultPolicy('p.yaml', 'tenantFrom: {name: shop}').problems.map((each) => each.message),
    ['tenantFrom.name is not used with type Namespace; use type Name, or remove it'],
  );
});

test('reports an unusable kubeconfig in one line, without its contents', async (context) => {
  const directory = temporaryDirectory('kubeconfig');
  context.after(() => directory.close());
  const messageFor = (content: string): string => {
    const path = join(directory.path, 'config');
    writeFileSync(path, content);
    try {
      loadKubeConfig(path);
    } catch (error) {
      assert.ok(error instanceof Error);
      assert.equal(error.cause, undefined);
      return error.message.replaceAll(path, 'FILE');
    }
    return 'fine';
  };
  const cluster = (fields: object): string =>
    JSON.stringify({
      clusters: [{ name: 'c', cluster: fields }],
      users: [{ name: 'u', user: { token: 'x' } }],
      contexts: [{ name: 'ctx', context: { cluster: 'c', user: 'u' } }],
      'current-context': 'ctx',
    });
  assert.equal(messageFor(cluster({ server: 'https://127.0.0.1:6443' })), 'fine');
  assert.doesNotMatch(messageFor('token: secret: secret'), /secret/);
  assert.match(messageFor('{}'), /^FILE has no cluster for its current context ""; choose one of \(none\)/);
  assert.match(messageFor(cluster({ server: 'nonsense' })), /^FILE: the server "nonsense" of cluster "c" is not a URL/);
  const proxied = (proxy: string): string =>
    messageFor(cluster({ server: 'https://127.0.0.1:6443', 'proxy-url': proxy }));
  for (const proxy of ['http://proxy:3128', 'https://u:secret@proxy', 'socks5://127.0.0.1:1080'])
    assert.equal(proxied(proxy), 'fine');
  for (const proxy of ['ftp://u:secret@proxy', 'proxy:3128', 'socks6://proxy'])
    assert.match(proxied(proxy), /^FILE: the proxy-url "(?!.*secret).*" of cluster "c" cannot be used; use http:\/\//);
  const missing = cluster({ server: 'https://127.0.0.1:6443', 'certificate-authority': '/nowhere/ca.crt' });
  assert.match(messageFor(missing), /the certificate \/nowhere\/ca.crt of cluster "c" does not exist/);
  assert.throws(() => loadKubeConfig(join(directory.path, 'none')), /cannot be read: the file does not exist/);
});
