// Secrets on a real API server, read with exactly the permissions of the chart or fewer.
import assert from 'node:assert/strict';
import { after, before, describe, type TestContext, test } from 'node:test';
import type { SecretAccess } from '@weir/model';
import { Sealer, Secret, silentLogger, systemClock } from '@weir/runtime';
import { MemoryStore } from '@weir/store';
import { eventually as eventuallyWithin, makeCertificate } from '@weir/testkit';
import { requireProgram } from '@weir/tools';
import { KubeApi } from '../../src/kubernetes/kube-api.ts';
import { KubernetesSource } from '../../src/watch/kubernetes/kubernetes-source.ts';
import { renderChart } from '../fixtures/chart-release.ts';
import { type Cluster, namespace, startCluster, startProxiedApi, startRunningController } from '../fixtures/cluster.ts';

const eventually = <T>(assertion: () => T | Promise<T>): Promise<T> =>
  eventuallyWithin(assertion, { timeoutMs: 45_000, intervalMs: 50 });

const sealer = new Sealer(new Secret('a secret of this fleet, long enough'));
const server = makeCertificate({ name: 'shop.example.com' });
const GOOD = { 'tls.crt': server.chain, 'tls.key': server.key };

const tlsSecret = (inNamespace: string, name: string, stringData: Readonly<Record<string, string>> = GOOD): object => ({
  apiVersion: 'v1',
  kind: 'Secret',
  metadata: { name, namespace: inNamespace },
  stringData,
});

describe('a source that watches Secrets', {
  ...requireProgram('etcd', 'kube-apiserver', 'kube-controller-manager', 'kubectl', 'helm'),
  concurrency: true,
}, () => {
  let cluster: Cluster;
  before(async () => {
    cluster = await startCluster();
  });
  after(() => cluster?.[Symbol.asyncDispose]());

  /** Creates an account with the controller's permissions, but without access to Secrets, and a source that signs in as this account. */
  const start = async (context: TestContext, account: string, access: SecretAccess): Promise<KubernetesSource> => {
    await cluster.kubectl('create', 'serviceaccount', account, '-n', 'weir-system');
    await bind(account, { role: 'weir-controller' });
    const token = await cluster.kubectl('create', 'token', account, '-n', 'weir-system');
    const api = new KubeApi(await cluster.signIn(token));
    const secrets = { access, sealer };
    const source = new KubernetesSource({ api, clock: systemClock, log: silentLogger(), secrets });
    context.after(async () => {
      await source.close();
      api.close();
    });
    return source;
  };
  /** Binds a Role in the namespace `within`, or a ClusterRole if `within` is undefined. */
  const bind = (
    account: string,
    { role, within }: { readonly role: string; readonly within?: string },
  ): Promise<string> =>
    cluster.kubectl(
      'create',
      ...(within === undefined ? ['clusterrolebinding'] : ['rolebinding', '-n', within]),
      `${account}-${role}`,
      within === undefined ? `--clusterrole=${role}` : `--role=${role}`,
      `--serviceaccount=weir-system:${account}`,
    );
  const install = async (release: string, ...values: readonly string[]): Promise<void> => {
    const roles = await renderChart(
      release,
      '-s=templates/controller/secrets.yaml',
      '--set=tls.fleetSecret=own',
      ...values.map((each) => `--set=${each}`),
    );
    await cluster.kubectl('apply', '-f', '-', { stdin: roles });
  };
  const names = (source: KubernetesSource): readonly string[] | undefined =>
    source.snapshot().secrets?.map((each) => `${each.namespace}/${each.name}`);
  const forbidden = (source: KubernetesSource): readonly string[] =>
    source
      .snapshot()
      .problems.flatMap(({ code, subject, message }) => (code === 'Forbidden' ? [`${subject}: ${message}`] : []));

  test('follows all Secrets of the cluster except the releases of Helm', async (context) => {
    await cluster.apply(namespace('wide'));
    await cluster.apply(tlsSecret('wide', 'tls'), tlsSecret('wide', 'other', { password: 'x'.repeat(100 * 1024) }), {
      ...tlsSecret('wide', 'release', { release: 'x' }),
      type: 'helm.sh/release.v1',
    });
    await install('wide', 'tls.secretAccess=cluster');
    const source = await start(context, 'wide', { kind: 'cluster' });
    await bind('wide', { role: 'wide-weir-controller-secrets' });
    const secretNamed = (name: string) =>
      source.snapshot().secrets?.find((each) => each.namespace === 'wide' && each.name === name);
    const chainNow = (): string | undefined => {
      const certificate = secretNamed('tls')?.certificate;
      return certificate?.kind === 'good' ? certificate.chain : certificate?.why;
    };
    await eventually(() => assert.equal(chainNow(), server.chain));
    assert.deepEqual(secretNamed('other'), { namespace: 'wide', name: 'other', certificate: null, authorities: null });
    assert.equal(secretNamed('release'), undefined);
    assert.deepEqual(forbidden(source), []);

    const next = makeCertificate({ name: 'next.example.com' });
    await cluster.apply(tlsSecret('wide', 'tls', { 'tls.crt': next.chain, 'tls.key': next.key }));
    await eventually(() => assert.equal(chainNow(), next.chain));
    await cluster.apply(tlsSecret('wide', 'tls', { 'tls.crt': next.chain, 'tls.key': server.key }));
    await eventually(() => assert.match(chainNow() ?? '', /does not belong/));
    await cluster.kubectl('delete', 'secret', '-n', 'wide', 'tls');
    await eventually(() => assert.equal(secretNamed('tls'), undefined));
  });

  test('follows Secrets of the named namespaces only, and recovers when a permission is granted', async (context) => {
    for (const name of ['some-a', 'some-b', 'some-c']) await cluster.apply(namespace(name), tlsSecret(name, 'tls'));
    await install('some', 'tls.secretAccess=namespaces', 'tls.secretNamespaces={some-a,some-b}');
    const access: SecretAccess = { kind: 'namespaces', namespaces: ['some-b', 'some-a'] };
    const source = await start(context, 'some', access);
    await bind('some', { role: 'some-weir-controller-secrets', within: 'some-a' });
    await eventually(() => {
      assert.deepEqual(names(source), ['some-a/tls']);
      assert.deepEqual(source.snapshot().unreadableSecrets, new Set(['some-b']));
    });
    const [problem = '', ...others] = forbidden(source);
    assert.deepEqual(others, []);
    assert.match(
      problem,
      /^secrets -n some-b: .*cannot list resource "secrets".*in the namespace "some-b"; until the controller can list secrets, Services in namespace some-b keep/,
    );
    assert.match(problem, /keep their certificates.*tls\.secretNamespaces.*can-i list secrets -n some-b --as=/);
    await source.synced(context.signal);

    await bind('some', { role: 'some-weir-controller-secrets', within: 'some-b' });
    await eventually(() => {
      assert.deepEqual(names(source), ['some-a/tls', 'some-b/tls']);
      assert.equal(source.snapshot().unreadableSecrets, undefined);
      assert.deepEqual(forbidden(source), []);
    });
    await cluster.apply(tlsSecret('some-b', 'more'), tlsSecret('some-c', 'more'));
    await eventually(() => assert.deepEqual(names(source), ['some-a/tls', 'some-b/more', 'some-b/tls']));
  });

  test('is synced without the permission, and reports all namespaces as unreadable', async (context) => {
    const source = await start(context, 'without', { kind: 'cluster' });
    await source.synced(context.signal);
    assert.equal(source.snapshot().unreadableSecrets, 'everywhere');
    assert.deepEqual(names(source), []);
    assert.match(
      forbidden(source).join('\n'),
      /^secrets: .*at the cluster scope; until the controller can list secrets, Services keep their certificates.*tls\.secretAccess=cluster/,
    );
  });

  test('requests no Secrets without access', async () => {
    await using detour = await startProxiedApi(cluster);
    await using running = startRunningController(cluster, {
      kubeConfig: detour.kubeConfig,
      store: new MemoryStore(),
    });
    await eventually(() => assert.ok(running.controller.isSynced));
    assert.deepEqual(
      detour.proxy.requests.filter(({ path }) => path.includes('secrets')),
      [],
    );
    assert.ok(detour.proxy.requests.some(({ path }) => path === '/api/v1/services'));
  });
});
