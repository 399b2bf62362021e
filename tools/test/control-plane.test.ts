import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { eventually } from '@weir/testkit';
import { type ControlPlane, insideNamespace, requireProgram, startControlPlane } from '../src/index.ts';

const namespace = insideNamespace({ addresses: ['10.250.0.1', '10.250.0.2', '10.244.7.8'] });

describe('a control plane in its own network namespace', { ...requireProgram('kubernetes'), ...namespace }, () => {
  let cluster: ControlPlane;
  before(async () => {
    cluster = await startControlPlane();
  });
  after(() => cluster.close());

  test('creates EndpointSlices for pods with a patched ready status', async () => {
    const { kubectl } = cluster;
    await kubectl('apply', '-f', '-', { stdin: podAndService });
    await kubectl('patch', 'pod', 'web', '--subresource=status', '--type=merge', '-p', JSON.stringify(readyStatus));
    await eventually(async () => {
      const slices = JSON.parse(
        await kubectl('get', 'endpointslices', '-l', 'kubernetes.io/service-name=web', '-o', 'json'),
      );
      assert.deepEqual(slices.items[0].endpoints[0].addresses, ['10.244.7.8']);
      assert.equal(slices.items[0].endpoints[0].conditions.ready, true);
    });
  });

  test('reports the version that it was built from', async () => {
    const { serverVersion, clientVersion } = JSON.parse(await cluster.kubectl('version', '-o', 'json'));
    assert.match(serverVersion.gitVersion, /^v1\.\d+\.\d+$/);
    assert.equal(serverVersion.gitVersion, clientVersion.gitVersion);
  });

  test('rejects a failed kubectl command with the stderr of kubectl', async () => {
    await assert.rejects(cluster.kubectl('get', 'pod', 'nobody'), /pods "nobody" not found/);
  });

  test('keeps objects when the API server restarts', async () => {
    await cluster.kubectl('create', 'namespace', 'kept');
    await cluster.stopApiServer();
    await assert.rejects(cluster.kubectl('get', 'namespace', 'kept'), /refused/);
    await cluster.startApiServer();
    assert.match(await cluster.kubectl('get', 'namespace', 'kept', '-o', 'name'), /namespace\/kept/);
  });
});

describe('a control plane with two API servers', { ...requireProgram('kubernetes'), ...namespace }, () => {
  test('lists both API servers in the EndpointSlice kubernetes, with one certificate', async () => {
    await using cluster = await startControlPlane({
      host: '10.250.0.1',
      certificateNames: ['10.250.0.2', '127.0.0.1'],
    });
    const second = await cluster.addApiServer('10.250.0.2');
    await eventually(async () => {
      const slice = await cluster.kubectl('get', 'endpointslices', 'kubernetes', '-o', 'json');
      const addresses = JSON.parse(slice).endpoints.flatMap((each: { addresses: string[] }) => each.addresses);
      assert.deepEqual(addresses.sort(), ['10.250.0.1', '10.250.0.2']);
    });
    await cluster.stopApiServer();
    assert.equal(await cluster.kubectl('get', '--raw', '/readyz', '--server', second.server), 'ok');
  });
});

const podAndService = `
apiVersion: v1
kind: Node
metadata: {name: node-1}
---
apiVersion: v1
kind: Pod
metadata: {name: web, labels: {app: web}}
spec:
  nodeName: node-1
  containers: [{name: web, image: example.test/web}]
---
apiVersion: v1
kind: Service
metadata: {name: web}
spec:
  type: LoadBalancer
  selector: {app: web}
  ports: [{port: 80, targetPort: 8080}]
`;

const readyStatus = {
  status: {
    phase: 'Running',
    podIP: '10.244.7.8',
    podIPs: [{ ip: '10.244.7.8' }],
    conditions: [{ type: 'Ready', status: 'True' }],
  },
};
