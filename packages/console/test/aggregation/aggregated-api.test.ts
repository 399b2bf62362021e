// Tests the console as an aggregated API of a real cluster.
import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { ManualClock } from '@weir/runtime';
import { eventually, makeCertificate, type TemporaryDirectory, temporaryDirectory } from '@weir/testkit';
import { aggregatedApiManifest, requireProgram } from '@weir/tools';
import { mountCertificate } from '../fixtures/mounted-certificate.ts';
import { type RbacCluster, startRbacCluster } from '../fixtures/rbac-cluster.ts';
import { startTestConsole, type TestConsole } from '../fixtures/test-console.ts';
import { RIVAL_DATA, type TwoTenantStore, twoTenantStore } from '../fixtures/two-tenants.ts';

const API = '/apis/console.weir.dev/v1';

describe(
  'the console through the API server',
  requireProgram('etcd', 'kube-apiserver', 'kube-controller-manager', 'kubectl'),
  () => {
    let directory: TemporaryDirectory;
    let cluster: RbacCluster;
    let clock: ManualClock;
    let seeded: TwoTenantStore;
    let console: TestConsole;

    before(async () => {
      directory = temporaryDirectory('aggregated');
      const serverCertificate = makeCertificate({ name: 'weir-console.people.svc' });
      cluster = await startRbacCluster();
      clock = new ManualClock(Date.now());
      seeded = await twoTenantStore(clock);
      console = await startTestConsole({
        seeded,
        clock,
        tls: mountCertificate(directory, serverCertificate, 'one'),
        auth: { kind: 'kubernetes', kubeconfig: cluster.kubeconfig },
      });
      const objects = aggregatedApiManifest({
        port: Number(new URL(console.url).port),
        ca: serverCertificate.certificate,
        group: 'console.weir.dev',
        version: 'v1',
        service: 'weir-console',
        namespace: 'people',
        account: 'weir-console',
      });
      await cluster.plane.kubectl('apply', '-f', '-', { stdin: objects });
      await cluster.plane.kubectl(
        'wait',
        '--for=condition=Available',
        'apiservice/v1.console.weir.dev',
        '--timeout=60s',
      );
      // Waits for the next read of the ConfigMap, because the console started before it had the right to read the ConfigMap.
      await eventually(async () => {
        await clock.advance(60_000);
        await kubectl('get', '--raw', `${API}/me`);
      });
    });
    after(async () => {
      await console?.[Symbol.asyncDispose]();
      await cluster?.[Symbol.asyncDispose]();
      await directory?.close();
    });

    const kubectl = (...args: string[]): Promise<string> => cluster.plane.kubectl(...args);

    test('shows a tenant its own Services and names the missing right', async () => {
      const dev = ['--as', 'system:serviceaccount:people:shop-dev'];
      const text = await kubectl('get', '--raw', `${API}/services`, ...dev);
      assert.deepEqual(
        JSON.parse(text).items.map(({ name }: { name: string }) => name),
        ['extra', 'web'],
      );
      assert.doesNotMatch(text, RIVAL_DATA);
      await assert.rejects(
        kubectl('get', '--raw', `${API}/fleet`, ...dev),
        /people:shop-dev.*lacks the right to get tenantusages/s,
      );
      await assert.rejects(kubectl('get', '--raw', `${API}/services/rival/rival-api`, ...dev), /lacks the right/);
    });

    test('shows everything to an administrator, whose rights come from a group', async () => {
      const me = JSON.parse(await kubectl('get', '--raw', `${API}/me`));
      assert.deepEqual([me.user, me.namespaces, me.may], ['admin', null, { suspend: true, resume: true }]);
    });

    test('supports kubectl discovery and leaves `services` to Kubernetes', async () => {
      assert.match(await kubectl('api-resources', '--api-group=console.weir.dev'), /^me\s/m);
      await kubectl('get', 'services', '--all-namespaces');
    });
  },
);
