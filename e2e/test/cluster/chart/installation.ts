import assert from 'node:assert/strict';
import { once } from 'node:events';
import type { IncomingMessage } from 'node:http';
import { get } from 'node:https';
import { text } from 'node:stream/consumers';
import { describe, test } from 'node:test';
import { type ChartFleet, RELEASE_NAMESPACE } from '../../../src/cluster/chart-fleet.ts';
import { SHARED_PORT } from './http.ts';

interface Pods {
  readonly items: readonly {
    readonly metadata: { readonly name: string; readonly labels: Readonly<Record<string, string>> };
    readonly spec: { readonly nodeName: string };
    readonly status: {
      readonly containerStatuses: readonly { readonly ready: boolean; readonly restartCount: number }[];
    };
  }[];
}

export function installation(fleet: () => ChartFleet): void {
  describe('an installation', () => {
    test('is ready when helm returns, and its notes name the next step', async () => {
      const notes = await withFleetOutput(
        fleet(),
        fleet().install('weir', '--set=controller.classless=true', `--set=controller.sharedPorts={${SHARED_PORT}}`),
      );
      assert.match(notes, /kubectl label node/);
      const { items } = await fleet().get<Pods>('pods', '-n', RELEASE_NAMESPACE);
      const counts = new Map<string, number>();
      for (const { metadata, status } of items) {
        const component = metadata.labels['app.kubernetes.io/component'] ?? '';
        counts.set(component, (counts.get(component) ?? 0) + 1);
        for (const { ready, restartCount } of status.containerStatuses) {
          assert.ok(ready, metadata.name);
          assert.equal(restartCount, 0, metadata.name);
        }
      }
      assert.deepEqual(Object.fromEntries([...counts].sort()), { console: 1, controller: 2, proxy: 3, redis: 1 });
    });

    test('runs no container as root or with a writable image', async () => {
      const proxy = await execIn(fleet(), 'daemonset/weir-proxy', 'process.getuid()');
      assert.equal(proxy, '65532');
      for (const workload of ['daemonset/weir-proxy', 'deployment/weir-controller', 'deployment/weir-console']) {
        const written = await execIn(
          fleet(),
          workload,
          "(() => { try { fs.writeFileSync('/weir/x', ''); return 'written'; } catch (error) { return error.code; } })()",
        );
        assert.equal(written, 'EROFS', workload);
      }
    });

    test('sets the kernel settings of the nodes, which the proxy itself cannot change', async () => {
      const settings = `['ipv4/tcp_migrate_req', 'core/somaxconn'].map((name) => fs.readFileSync('/proc/sys/net/' + name, 'utf8').trim()).join()`;
      assert.equal(await execIn(fleet(), 'daemonset/weir-proxy', settings), '1,4096');
      const written = await execIn(
        fleet(),
        'daemonset/weir-proxy',
        "(() => { try { fs.writeFileSync('/proc/sys/net/core/somaxconn', '128'); return 'written'; } catch (error) { return error.code; } })()",
      );
      assert.match(written, /^(EROFS|EACCES)$/);
    });

    test('serves metrics to clients with the token of the release only', async () => {
      const { addresses } = fleet();
      const [ca, token] = [
        await secretOf(fleet(), 'weir-proxy-tls', 'ca\\.crt'),
        await secretOf(fleet(), 'weir-admin', 'token'),
      ];
      for (const address of addresses) {
        const request = { url: `https://${address}:8687/metrics`, ca, servername: 'weir-proxy' };
        assert.equal((await getHttps(request)).status, 401);
        const { status, body } = await getHttps({ ...request, token });
        assert.equal(status, 200);
        assert.match(body, /^weir_table_revision \d+$/m);
      }
    });

    test('has a console that authenticates users and shows what they may see', async () => {
      const { kubectl } = fleet();
      await kubectl('create', 'clusterrole', 'weir-viewer', '--verb=get', '--resource=tenantusages.weir.dev');
      await kubectl('create', 'serviceaccount', 'viewer', '-n', 'default');
      await kubectl(
        'create',
        'clusterrolebinding',
        'weir-viewer',
        '--clusterrole=weir-viewer',
        '--serviceaccount=default:viewer',
      );
      const token = (await kubectl('create', 'token', 'viewer', '-n', 'default', '--audience=console.weir.dev')).trim();
      const ca = await secretOf(fleet(), 'weir-console-tls', 'ca\\.crt');
      const selector = '-l=app.kubernetes.io/component=console';
      const ip = await kubectl(
        'get',
        'pods',
        '-n',
        RELEASE_NAMESPACE,
        selector,
        '-o=jsonpath={.items[0].status.podIP}',
      );
      const request = {
        url: `https://${ip}:8686/api/v1/proxies`,
        ca,
        servername: `weir-console.${RELEASE_NAMESPACE}.svc`,
      };
      assert.equal((await getHttps(request)).status, 401);
      const { status, body } = await getHttps({ ...request, token });
      assert.equal(status, 200, body);
      const { items } = JSON.parse(body) as { items: readonly { node: string }[] };
      assert.deepEqual(items.map(({ node }) => node).sort(), ['node-1', 'node-2', 'node-3']);
    });

    test('passes weir doctor', async () => {
      const report = await fleet().kubectl(
        'exec',
        '-n',
        RELEASE_NAMESPACE,
        'deployment/weir-controller',
        '--',
        'weir',
        'doctor',
      );
      assert.match(report, / 0 error$/m);
      assert.doesNotMatch(report, /not checked/);
    });
  });
}

/** Waits for the operation. If it fails, adds the output of the fleet to the error. */
async function withFleetOutput<T>(fleet: ChartFleet, operation: Promise<T>): Promise<T> {
  try {
    return await operation;
  } catch (error) {
    throw new Error(`${error instanceof Error ? error.message : error}\n${await fleet.output()}`, { cause: error });
  }
}

async function execIn({ kubectl }: ChartFleet, workload: string, expression: string): Promise<string> {
  const output = await kubectl(
    'exec',
    '-n',
    RELEASE_NAMESPACE,
    workload,
    '--',
    '/usr/local/bin/node',
    '--print',
    expression,
  );
  return output.trim();
}

async function secretOf({ kubectl }: ChartFleet, name: string, key: string): Promise<string> {
  const text = await kubectl('get', 'secret', name, '-n', RELEASE_NAMESPACE, `-o=jsonpath={.data.${key}}`);
  return Buffer.from(text, 'base64').toString();
}

export interface HttpsRequest {
  readonly url: string;
  /** The PEM certificate of the CA that must have issued the server's certificate. */
  readonly ca: string;
  readonly servername: string;
  readonly token?: string;
}

export async function getHttps({
  url,
  ca,
  servername,
  token,
}: HttpsRequest): Promise<{ status: number; body: string }> {
  const headers = token === undefined ? {} : { authorization: `Bearer ${token}` };
  const request = get(url, { ca, servername, headers, agent: false, timeout: 10_000 });
  const [response] = (await once(request, 'response')) as [IncomingMessage];
  return { status: response.statusCode ?? 0, body: await text(response) };
}
