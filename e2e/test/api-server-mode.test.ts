// Follows docs/api-server.md: all API servers of a cluster are behind 127.0.0.1:7443, while API servers start, stop, hang and die.
import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { eventually, spawnProcess } from '@weir/testkit';
import { type ApiServer, type ControlPlane, insideNamespace, requireProgram, startControlPlane } from '@weir/tools';
import { type KubectlLoop, type KubeletWatch, startKubectlLoop, startKubeletWatch } from '../src/api-server-clients.ts';
import { type ApiServerMode, LOCAL_API_SERVER, prepareApiServerMode } from '../src/api-server-mode.ts';

const FIRST = '10.250.0.1';
const SECOND = '10.250.0.2';
/** An address in the settings files at which no API server runs. */
const THIRD = '10.250.0.3';
const example = (name: string): string =>
  fileURLToPath(new URL(`../../docs/examples/api-server/${name}`, import.meta.url));

const requirement = {
  ...requireProgram('kubernetes'),
  ...insideNamespace({ addresses: [FIRST, SECOND] }),
  timeout: 600_000,
};

/** Waits up to 45 s, because the lease of the leading API server lasts 15 s and the other API server checks the lease every 10 s. */
const FAILOVER_WAIT = { timeoutMs: 45_000, intervalMs: 200 };
const DEFAULT_WAIT = { timeoutMs: 20_000, intervalMs: 100 };

describe('all API servers of a cluster behind 127.0.0.1:7443', requirement, () => {
  let cluster: ControlPlane;
  let second: ApiServer;
  let weir: ApiServerMode;
  let kubectl: KubectlLoop | undefined;
  let kubelet: KubeletWatch | undefined;
  let createdCount = 0;

  before(async () => {
    cluster = await startControlPlane({ host: FIRST, certificateNames: [SECOND, '127.0.0.1'] });
    weir = prepareApiServerMode(cluster, [FIRST, THIRD]);
  });
  after(async () => {
    await kubectl?.close();
    await kubelet?.close();
    await weir?.[Symbol.asyncDispose]();
    await cluster?.close();
  });

  /** Asserts that the watch receives a new object and that the kubectl loop continues to succeed. */
  async function isServed(wait = DEFAULT_WAIT): Promise<void> {
    createdCount += 1;
    const name = `seen-${createdCount}`;
    const { succeeded = 0 } = kubectl ?? {};
    await eventually(() => admin('create', 'configmap', name), wait);
    await eventually(() => {
      assert.ok(kubelet?.seenNames.has(name), `the watch has not seen ${name}`);
      assert.ok((kubectl?.succeeded ?? 0) > succeeded + 1, 'kubectl did not succeed again');
    }, wait);
  }

  /** Runs kubectl with the administrator's kubeconfig through 127.0.0.1:7443. */
  function admin(...args: string[]): Promise<string> {
    return cluster.kubectl(...args, '--server', LOCAL_API_SERVER, '--request-timeout=10s');
  }

  function assertNoConsecutiveFailures(): void {
    const all = [...(kubectl?.failures ?? []), ...(kubelet?.failures ?? [])];
    assert.deepEqual(
      all.filter(({ consecutive }) => consecutive > 1),
      [],
      weir.output(),
    );
  }

  test('serves from the static list at once and logs one line for a missing or unauthorized kubeconfig', async () => {
    await weir.start();
    assert.equal(await admin('get', '--raw', '/readyz'), 'ok');
    await eventually(() => assert.match(weir.output(), /the file does not exist/), DEFAULT_WAIT);
    await admin('create', 'serviceaccount', 'node');
    const token = await admin('create', 'token', 'node', '--duration=1h');
    weir.setToken('wrong');
    await eventually(
      () =>
        assert.match(
          weir.output(),
          /Unauthorized; until the endpoints can be read, the endpoints in the files are used. Correct/,
        ),
      DEFAULT_WAIT,
    );
    weir.setToken(token.trim());
    await eventually(
      () => assert.match(weir.output(), /is forbidden: User .*Grant the permissions .* that --kubeconfig names/),
      DEFAULT_WAIT,
    );
    assert.deepEqual(weir.storedAddresses(), []);
  });

  test('refines the list through itself with the permissions of rbac.yaml', async () => {
    await admin('apply', '-f', example('rbac.yaml'));
    const asNode = ['--as=system:node:a', '--as-group=system:nodes', '--as-group=system:authenticated'];
    assert.match(await admin('auth', 'can-i', 'watch', 'endpointslices', ...asNode), /^yes/);
    // Gives the role to a service account, because node credentials need a client CA, which this cluster does not have.
    await admin('create', 'rolebinding', 'node', '--role=weir-api-server', '--serviceaccount=default:node');
    await eventually(() => assert.deepEqual(weir.storedAddresses(), [FIRST]), DEFAULT_WAIT);
    assert.match(weir.output(), /EndpointsNotRefined.*\n(.*\n)*.*EndpointsNotRefined/);
  });

  test('uses a second API server as soon as it is ready', async () => {
    kubectl = startKubectlLoop(weir.kubeconfig, ['get', '--raw', '/version']);
    kubelet = startKubeletWatch({ server: LOCAL_API_SERVER, ...weir.credentials, namespace: 'default' });
    await isServed();
    second = await cluster.addApiServer(SECOND);
    await eventually(() => assert.deepEqual(weir.storedAddresses(), [FIRST, SECOND]), DEFAULT_WAIT);
    await isServed();
  });

  test('no client fails twice in a row while the first API server stops and restarts', async () => {
    await cluster.stopApiServer({ signal: 'SIGTERM' });
    await isServed(FAILOVER_WAIT);
    await eventually(() => assert.deepEqual(weir.storedAddresses(), [SECOND]), FAILOVER_WAIT);
    await cluster.startApiServer();
    await eventually(() => assert.deepEqual(weir.storedAddresses(), [FIRST, SECOND]), DEFAULT_WAIT);
    assertNoConsecutiveFailures();
  });

  test('no client fails twice in a row while the API server with the open watch hangs, before the list changes', async () => {
    const before = kubelet?.openedWatches ?? 0;
    second.freeze();
    await isServed();
    assert.deepEqual(weir.storedAddresses(), [FIRST, SECOND]);
    assert.ok((kubelet?.openedWatches ?? 0) > before, 'the watch was not connected to the hanging API server');
    assertNoConsecutiveFailures();
    // Restarts the API server instead of resuming it, because a resumed API server would serve an old state to watches for a while.
    await second.stop();
    await second.start();
    // Waits until the cluster's list and Weir's list contain the API server, because an API server is absent from the first list until it
    // is ready.
    const list = ['get', 'endpointslice', 'kubernetes', '-o', 'jsonpath={.endpoints[*].addresses}'];
    await eventually(async () => {
      assert.ok((await cluster.kubectl(...list)).includes(`"${SECOND}"`));
      assert.deepEqual(weir.storedAddresses(), [FIRST, SECOND]);
    }, DEFAULT_WAIT);
  });

  test('no client fails twice in a row while the API server with the open watch is killed', async () => {
    await cluster.stopApiServer({ signal: 'SIGKILL' });
    await isServed(FAILOVER_WAIT);
    await eventually(() => assert.deepEqual(weir.storedAddresses(), [SECOND]), FAILOVER_WAIT);
    assertNoConsecutiveFailures();
  });

  test('a restart without any API server listens at once and uses the stored list when one is back', async () => {
    await Promise.all([kubectl?.close(), kubelet?.close()]);
    await Promise.all([second.stop(), weir.stop('SIGKILL')]);
    await weir.start();
    await assert.rejects(admin('get', '--raw', '/readyz'), /EOF|reset|closed/);
    // Starts only the second API server, which Weir knows only from the stored list: the settings files do not list it.
    await second.start();
    await eventually(() => admin('get', '--raw', '/readyz'), DEFAULT_WAIT);
    await cluster.startApiServer();
    await eventually(() => assert.deepEqual(weir.storedAddresses(), [FIRST, SECOND]), DEFAULT_WAIT);
  });

  test('weir translate accepts the manifests of the docs, and the API server accepts the pod', async () => {
    const directory = example('');
    const command = fileURLToPath(new URL('../../packages/cli/bin/weir.js', import.meta.url));
    const args = [command, 'translate', '-f', directory];
    const translate = await spawnProcess({ command: process.execPath, args, mayExit: true });
    assert.equal((await translate.exited).code, 0, translate.output());
    await cluster.kubectl('wait', '--for=create', 'serviceaccount/default', '-n', 'kube-system', '--timeout=30s');
    const dryRun = await cluster.kubectl('create', '--dry-run=server', '-f', example('weir-api-server.yaml'));
    assert.match(dryRun, /^pod\/weir-api-server created \(server dry run\)/);
  });
});
