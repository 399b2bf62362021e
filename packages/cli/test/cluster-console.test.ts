// Tests commands of a user who has only a kubeconfig. A real API server forwards the requests to the console.
import assert from 'node:assert/strict';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { after, before, describe, test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { kubernetesSuspensionWriter, type RunningConsole, startConsole } from '@weir/console';
import { loadKubeConfig } from '@weir/controller';
import { systemClock as clock, silentLogger } from '@weir/runtime';
import type { MemoryStore } from '@weir/store';
import { eventually, makeCertificate, type TemporaryDirectory, temporaryDirectory } from '@weir/testkit';
import { aggregatedApiManifest, type ControlPlane, requireProgram, startControlPlane } from '@weir/tools';
import { storeOf } from './fixtures/store.ts';
import { type InProcessResult, runWeirInProcess } from './fixtures/weir-in-process.ts';

const CRDS = fileURLToPath(new URL('../../../charts/weir-crds/definitions', import.meta.url));

describe(
  'the weir command with a kubeconfig',
  requireProgram('etcd', 'kube-apiserver', 'kube-controller-manager', 'kubectl'),
  () => {
    let directory: TemporaryDirectory;
    let plane: ControlPlane;
    let store: MemoryStore;
    let console: RunningConsole;
    let dev: string;

    before(async () => {
      directory = temporaryDirectory('by-kubeconfig');
      plane = await startControlPlane();
      const { kubectl, kubeconfig: admin } = plane;
      const consoleCertificate = makeCertificate({ name: 'weir-console.weir-system.svc' });
      writeFileSync(join(directory.path, 'tls.crt'), consoleCertificate.chain);
      writeFileSync(join(directory.path, 'tls.key'), consoleCertificate.key);
      store = await storeOf('shop', 'rival');
      const kubeconfig = loadKubeConfig(admin);
      const log = silentLogger();
      console = await startConsole({
        store,
        fleet: 'test',
        host: '127.0.0.1',
        port: 0,
        tls: directory.path,
        auth: { kind: 'kubernetes', kubeconfig },
        suspensionWriter: kubernetesSuspensionWriter({ kubeconfig, suspensionStore: store.suspensions, clock, log }),
        clock,
        log,
      });
      await console.refresh();
      await kubectl('apply', '-f', CRDS);
      for (const name of ['weir-system', 'shop']) await kubectl('create', 'namespace', name);
      const service = 'weir-console';
      const api = { group: 'console.weir.dev', version: 'v1', service, namespace: 'weir-system', account: 'none' };
      const port = Number(new URL(console.url).port);
      await kubectl('apply', '-f', '-', {
        stdin: aggregatedApiManifest({ ...api, port, ca: consoleCertificate.certificate }),
      });
      await kubectl('create', 'serviceaccount', 'dev', '-n', 'shop');
      await kubectl('create', 'role', 'dev', '-n', 'shop', '--verb=get', '--resource=tenantusages.weir.dev');
      await kubectl('create', 'rolebinding', 'dev', '-n', 'shop', '--role=dev', '--serviceaccount=shop:dev');
      dev = join(directory.path, 'dev.kubeconfig');
      const token = (await kubectl('create', 'token', 'dev', '-n', 'shop')).trim();
      writeFileSync(
        dev,
        JSON.stringify(signedInByProgram(JSON.parse(await kubectl('config', 'view', '--raw', '-o', 'json')), token)),
      );
      await eventually(async () => assert.equal((await as(admin, 'get', 'tenants')).code, 0), { timeoutMs: 30_000 });
    });
    after(async () => {
      await console?.close();
      await store?.close();
      await plane?.close();
      await directory?.close();
    });

    const as = (kubeconfig: string, ...args: string[]): Promise<InProcessResult> =>
      runWeirInProcess([...args, '--kubeconfig', kubeconfig]);

    test("shows a developer who signs in with a credential plugin only the developer's Services", async () => {
      const { code, stdout, stderr } = await as(dev, 'get', 'services', '-o', 'json');
      assert.equal(code, 0, stderr);
      assert.deepEqual(
        JSON.parse(stdout).items.map(({ namespace }: { namespace: string }) => namespace),
        ['shop'],
      );
      const refused = await as(dev, 'explain', 'rival/web');
      assert.equal(refused.code, 1);
      assert.match(
        refused.stderr,
        /^weir: "system:serviceaccount:shop:dev" lacks the right to get tenantusages\.weir\.dev in namespace "rival"/,
      );
    });

    test('lets an administrator suspend and resume a Service, but not a developer', async () => {
      const { kubeconfig: admin } = plane;
      const stop = ['suspend', 'shop/web', '--message', 'stop'];
      assert.match((await as(dev, ...stop)).stderr, /lacks the right to create suspensions\.weir\.dev/);
      assert.equal((await as(admin, ...stop)).code, 0);
      const [cutoff] = (await store.suspensions.read()).suspensions;
      assert.equal(cutoff?.name, 'service.shop.web');
      const made = JSON.parse(await plane.kubectl('get', 'suspension', 'service.shop.web', '-o', 'json'));
      assert.equal(made.metadata.annotations['weir.dev/made-by'], 'admin');
      const sooner = [...stop, '--for', '10m'];
      const refused = await as(admin, ...sooner);
      assert.equal(refused.code, 1);
      assert.match(refused.stderr, /"service\.shop\.web" already exists and ends later than the request; .*--replace/);
      assert.equal((await as(admin, ...sooner, '--replace')).code, 0);
      assert.equal((await as(admin, 'resume', 'shop/web')).code, 0);
      assert.deepEqual((await store.suspensions.read()).suspensions, []);
    });

    test('streams the live view through the API server', async () => {
      const { code, stdout, stderr } = await as(dev, 'top', '--once', '-o', 'json');
      assert.equal(code, 0, stderr);
      assert.deepEqual(
        JSON.parse(stdout).tenants.map(({ name }: { name: string }) => name),
        ['shop'],
      );
    });
  },
);

/** Returns the kubeconfig with a credential plugin that prints the token. Kubeconfigs of cloud providers use such plugins. */
function signedInByProgram(config: { users: { user: object }[] }, token: string): object {
  const apiVersion = 'client.authentication.k8s.io/v1';
  const credential = JSON.stringify({ apiVersion, kind: 'ExecCredential', status: { token } });
  const exec = { apiVersion, command: 'echo', args: [credential], interactiveMode: 'Never' };
  return { ...config, users: config.users.map((each) => ({ ...each, user: { exec } })) };
}
