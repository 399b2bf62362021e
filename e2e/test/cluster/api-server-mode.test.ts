// Follows docs/api-server.md on a real node. The kubelet and kube-proxy know only the API server 127.0.0.1:7443. At this address, Weir
// listens as a static pod that the kubelet starts from the manifest of the docs.
import assert from 'node:assert/strict';
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { after, before, describe, test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { eventually } from '@weir/testkit';
import {
  type ApiServer,
  type Cluster,
  type ControlPlane,
  ECHO_IMAGE,
  insideSandbox,
  requireProgram,
  startCluster,
  weirImages,
} from '@weir/tools';
import { LOCAL_API_SERVER } from '../../src/api-server-mode.ts';

const FIRST = '10.250.0.1';
const SECOND = '10.250.0.100';
const example = (name: string): string =>
  readFileSync(fileURLToPath(new URL(`../../../docs/examples/api-server/${name}`, import.meta.url)), 'utf8');

const DEFAULT_WAIT = { timeoutMs: 60_000, intervalMs: 300 };
const requirement = { ...requireProgram('images', 'kubernetes', 'nodes'), ...insideSandbox() };

describe('a kubelet that reaches the API server through its own static pod', {
  ...requirement,
  timeout: 400_000,
}, () => {
  let cluster: Cluster;
  let second: ApiServer;

  before(async () => {
    cluster = await startCluster({
      nodes: 1,
      clientAddresses: [SECOND],
      images: [(await weirImages()).controller],
      certificateNames: [SECOND, '127.0.0.1'],
      apiServer: LOCAL_API_SERVER,
      staticPods: { 'weir-api-server.yaml': example('weir-api-server.yaml') },
      prepare: writeNodeFiles,
    });
  });
  after(() => cluster?.close());

  test('starts and runs pods', async () => {
    await assertPodRuns('first', cluster.server);
    const phase = ['-n', 'kube-system', '-o', 'jsonpath={.status.phase}'];
    await eventually(
      async () => assert.equal(await cluster.kubectl('get', 'pod', 'weir-api-server-node-1', ...phase), 'Running'),
      DEFAULT_WAIT,
    );
  });

  test('stays ready and switches API servers whenever one dies', async () => {
    second = await cluster.addApiServer(SECOND);
    await waitForStoredAddresses(2);
    const before = refusals();
    for (const round of [1, 2]) {
      await cluster.stopApiServer();
      await assertPodRuns(`without-first-${round}`, second.server);
      await cluster.startApiServer();
      await waitForStoredAddresses(2);
      await second.stop();
      await assertPodRuns(`without-second-${round}`, cluster.server);
      await second.start();
      await waitForStoredAddresses(2);
    }
    assert.deepEqual(refusals().slice(before.length), [], 'the kubelet was refused at 127.0.0.1:7443');
    const ready = '{range .status.conditions[?(@.type=="Ready")]}{.status}{end}';
    assert.equal(await cluster.kubectl('get', 'node', 'node-1', '-o', `jsonpath=${ready}`), 'True');
  });

  /** Waits until the list that the pod has stored contains `count` API servers. */
  async function waitForStoredAddresses(count: number): Promise<void> {
    await eventually(() => {
      const kept = readFileSync('/var/lib/weir-api-server/api-server-endpoints.json', 'utf8');
      assert.equal(kept.match(/"10\.[\d.]+"/g)?.length, count);
    }, DEFAULT_WAIT);
  }

  /** Returns the errors that kubelet and kube-proxy have logged about refused or reset connections to 127.0.0.1:7443. */
  function refusals(): readonly string[] {
    return cluster
      .output()
      .split('\n')
      .filter((line) => /^E.*127\.0\.0\.1:7443.*(refused|reset)/.test(line));
  }

  /** Asserts that the kubelet starts a new pod and reports the pod as running. */
  async function assertPodRuns(name: string, server: string): Promise<void> {
    const containers = [{ name: 'echo', image: ECHO_IMAGE, imagePullPolicy: 'Never' }];
    const pod = { apiVersion: 'v1', kind: 'Pod', metadata: { name }, spec: { nodeName: 'node-1', containers } };
    const flags = ['--server', server];
    await eventually(() => cluster.kubectl('apply', '-f', '-', ...flags, { stdin: JSON.stringify(pod) }), DEFAULT_WAIT);
    await eventually(async () => {
      assert.equal(await cluster.kubectl('get', 'pod', name, '-o', 'jsonpath={.status.phase}', ...flags), 'Running');
    }, DEFAULT_WAIT);
  }
});

/** Writes the files that a user puts on a node to the file system of the sandbox. */
function writeNodeFiles({ server, kubeconfig }: ControlPlane): void {
  for (const folder of ['/etc/weir/api-server', '/etc/kubernetes/pki', '/var/lib/kubelet/pki'])
    mkdirSync(folder, { recursive: true });
  const port = `port: ${new URL(server).port}`;
  writeFileSync(
    '/etc/weir/api-server/endpoints.yaml',
    example('endpoints.yaml').replace('port: 6443', port).replace('10.0.0.11', FIRST),
  );
  const config = JSON.parse(readFileSync(kubeconfig, 'utf8'));
  const ca = Buffer.from(config.clusters[0].cluster['certificate-authority-data'], 'base64');
  writeFileSync('/etc/kubernetes/pki/ca.crt', ca);
  config.clusters[0].cluster = { server: LOCAL_API_SERVER, 'certificate-authority': '/etc/kubernetes/pki/ca.crt' };
  // Makes the file readable only by root, like the key of the kubelet.
  writeFileSync('/etc/weir/api-server/kubeconfig', JSON.stringify(config), { mode: 0o600 });
}
