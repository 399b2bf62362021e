import assert from 'node:assert/strict';
import { once } from 'node:events';
import { Agent, type IncomingMessage, request } from 'node:http';
import { connect as connectHttp2 } from 'node:http2';
import { text } from 'node:stream/consumers';
import { describe, test } from 'node:test';
import { eventually } from '@weir/testkit';
import type { ChartFleet } from '../../../src/cluster/chart-fleet.ts';
import { namespaceManifest } from '../../../src/manifests.ts';
import { addressesIn, conditionIn, waitForStatus } from '../../../src/service-status.ts';

/** The port that the installation shares between Services. */
export const SHARED_PORT = 8080;
const HOST = 'store.web.example';
const POD_PORT = 8000;

/** A server that answers with its name and with what it has received. */
const SERVER = `
  require('node:http').createServer((request, response) => {
    const { url, headers } = request;
    request.resume().on('end', () => {
      response.setHeader('content-type', 'application/json');
      response.end(JSON.stringify({ app: process.env.APP, url, headers }));
    });
  }).listen(${POD_PORT});
  process.on('SIGTERM', () => process.exit());`;

interface Received {
  readonly app: string;
  readonly url: string;
  readonly headers: Readonly<Record<string, string>>;
}

export function http(fleet: () => ChartFleet): void {
  describe('a tenant with HTTP', () => {
    test('shares a port with other Services by host and path', async () => {
      const { apply, cluster } = fleet();
      await apply(namespaceManifest('web'), {
        apiVersion: 'weir.dev/v1alpha1',
        kind: 'TenantPolicy',
        metadata: { name: 'web' },
        spec: {
          namespaceSelector: { matchLabels: { 'kubernetes.io/metadata.name': 'web' } },
          allowedHosts: ['*.web.example'],
        },
      });
      const image = await proxyImage(fleet());
      const ofApi = {
        'weir.dev/path-prefix': '/api',
        'weir.dev/max-body-size': '1Ki',
        'weir.dev/error-pages': 'errors',
      };
      await apply(...httpServer('pages', image, {}), ...httpServer('api', image, ofApi));
      for (const name of ['pages', 'api'])
        await waitForStatus(cluster, `web/${name}`, (now) => conditionIn(now, 'Programmed')?.status === 'True');
      await eventually(
        async () => {
          assert.equal((await get(await webAddress(fleet()), '/basket')).app, 'pages');
          assert.equal((await get(await webAddress(fleet()), '/api/orders?all')).app, 'api');
        },
        { timeoutMs: 30_000 },
      );
      const unknown = { name: 'unknown.web.example' };
      assert.equal((await send(await webAddress(fleet()), '/', unknown)).status, 404);
    });

    test('gets the address of the client and the host', async () => {
      const host = await webAddress(fleet());
      const { url, headers } = await get(host, '/api/orders?all');
      assert.equal(url, '/api/orders?all');
      assert.equal(headers.host, HOST);
      assert.match(headers['x-forwarded-for'] ?? '', /^\d+\.\d+\.\d+\.\d+$/);
      assert.equal(headers['x-forwarded-port'], String(SHARED_PORT));
    });

    test('shows the error pages of a ConfigMap', async () => {
      const host = await webAddress(fleet());
      const upload = { method: 'POST', accept: 'text/plain', body: 'x'.repeat(2_048) };
      assert.match((await send(host, '/api/orders', upload)).content, /413/);
      await fleet().apply({
        apiVersion: 'v1',
        kind: 'ConfigMap',
        metadata: { namespace: 'web', name: 'errors' },
        data: { '413.txt': 'too large for this shop' },
      });
      await eventually(
        async () => {
          const { status, content } = await send(host, '/api/orders', upload);
          assert.deepEqual({ status, content }, { status: 413, content: 'too large for this shop' });
        },
        { timeoutMs: 20_000 },
      );
    });

    test('serves HTTP/2 clients from pods that speak HTTP/1.1', async () => {
      const client = connectHttp2(`http://${await webAddress(fleet())}:${SHARED_PORT}`);
      try {
        const stream = client.request({ ':path': '/api/2', ':authority': HOST });
        assert.equal((JSON.parse(await text(stream)) as Received).app, 'api');
      } finally {
        client.close();
      }
    });

    test('loses no request while its pods are replaced', async () => {
      const { kubectl } = fleet();
      const host = await webAddress(fleet());
      const agent = new Agent({ keepAlive: true });
      let isReplaced = false;
      let answered = 0;
      const clients = Array.from({ length: 4 }, async () => {
        while (!isReplaced) {
          assert.equal((await get(host, '/api/steady', agent)).app, 'api');
          answered += 1;
        }
      });
      const replaced = (async () => {
        try {
          await kubectl('rollout', 'restart', 'deployment/api', '-n', 'web');
          await kubectl('rollout', 'status', 'deployment/api', '-n', 'web', '--timeout=60s');
        } finally {
          isReplaced = true;
        }
      })();
      try {
        await Promise.all([replaced, ...clients]);
      } finally {
        isReplaced = true;
        agent.destroy();
      }
      assert.ok(answered > 0);
    });

    test('is answered with 403 while a Suspension is in force', async () => {
      const { apply, kubectl } = fleet();
      const host = await webAddress(fleet());
      const status = async (): Promise<number | undefined> => (await send(host, '/')).status;
      await apply({
        apiVersion: 'weir.dev/v1alpha1',
        kind: 'Suspension',
        metadata: { name: 'web' },
        spec: { target: { type: 'Tenant', tenant: 'web' }, message: 'not paid' },
      });
      await eventually(async () => assert.equal(await status(), 403), { timeoutMs: 20_000 });
      await kubectl('delete', 'suspension', 'web');
      await eventually(async () => assert.equal(await status(), 200), { timeoutMs: 20_000 });
      await kubectl('delete', 'namespace', 'web');
    });
  });
}

async function get(host: string, path: string, agent?: Agent): Promise<Received> {
  const { status, content } = await send(host, path, { agent });
  assert.equal(status, 200, content);
  return JSON.parse(content) as Received;
}

interface SendOptions {
  /** The value of Host. */
  readonly name?: string;
  readonly agent?: Agent | undefined;
  readonly method?: string;
  readonly accept?: string;
  readonly body?: string;
}

async function send(
  host: string,
  path: string,
  { name = HOST, agent, method = 'GET', accept = '*/*', body }: SendOptions = {},
): Promise<{ readonly status: number | undefined; readonly content: string }> {
  const sent = request({ host, port: SHARED_PORT, path, method, headers: { host: name, accept }, agent });
  sent.end(body);
  const [response] = (await once(sent, 'response')) as [IncomingMessage];
  return { status: response.statusCode, content: await text(response) };
}

/** Returns an address that both Services have published. */
async function webAddress({ cluster }: ChartFleet): Promise<string> {
  const published = await Promise.all(
    ['web/pages', 'web/api'].map(async (path) =>
      addressesIn(await waitForStatus(cluster, path, (now) => addressesIn(now).length > 0)),
    ),
  );
  const shared = published[0]?.find((address) => published[1]?.includes(address));
  assert.ok(shared !== undefined, 'the Services have no address in common');
  return shared;
}

/** Returns the image of the proxy, which contains Node.js. */
async function proxyImage({ kubectl }: ChartFleet): Promise<string> {
  return await kubectl(
    ...['get', 'daemonset', 'weir-proxy', '-n', 'weir-system'],
    '-o=jsonpath={.spec.template.spec.containers[0].image}',
  );
}

function httpServer(name: string, image: string, annotations: Readonly<Record<string, string>>): object[] {
  const labels = { app: name };
  const container = {
    name,
    image,
    imagePullPolicy: 'Never',
    command: ['/usr/local/bin/node', '--eval', SERVER],
    env: [{ name: 'APP', value: name }],
    readinessProbe: { tcpSocket: { port: POD_PORT }, periodSeconds: 1 },
    lifecycle: { preStop: { sleep: { seconds: 3 } } },
  };
  return [
    {
      apiVersion: 'apps/v1',
      kind: 'Deployment',
      metadata: { namespace: 'web', name },
      spec: {
        replicas: 2,
        selector: { matchLabels: labels },
        strategy: { type: 'RollingUpdate', rollingUpdate: { maxUnavailable: 0, maxSurge: 1 } },
        template: {
          metadata: { labels },
          spec: { automountServiceAccountToken: false, terminationGracePeriodSeconds: 10, containers: [container] },
        },
      },
    },
    {
      apiVersion: 'v1',
      kind: 'Service',
      metadata: { namespace: 'web', name, annotations: { 'weir.dev/hosts': HOST, ...annotations } },
      spec: {
        type: 'LoadBalancer',
        selector: labels,
        ports: [{ name: 'http', port: SHARED_PORT, targetPort: POD_PORT, appProtocol: 'http' }],
      },
    },
  ];
}
