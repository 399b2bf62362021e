import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { chmodSync, copyFileSync, writeFileSync } from 'node:fs';
import { get } from 'node:http';
import { join } from 'node:path';
import { after, before, describe, test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { eventually, temporaryDirectory } from '@weir/testkit';
import { type ControlPlane, programPath, startControlPlane } from '@weir/tools';
import { API_SERVER_ADDRESS, nodeAddress, podAddress } from '../../src/addresses.ts';
import { applyCustomResources } from '../../src/fleet.ts';
import { type Container, type ContainerOptions, startContainer } from '../../src/images/container.ts';
import type { UnpackedImages } from '../../src/images/unpacked-image.ts';
import { Pods } from '../../src/pods.ts';
import { addressesIn, waitForStatus } from '../../src/service-status.ts';

const root = fileURLToPath(new URL('../../../', import.meta.url));
const NODE = 'node-1';
const WEIR_UID = 65532;
const REDIS_UID = 999;
/** The bit of CAP_NET_BIND_SERVICE (capability 10) in a capability mask. */
const CAP_NET_BIND_SERVICE_BIT = 1 << 10;
const READY_TIMEOUT_MS = 60_000;

export function imagesRunning(images: () => UnpackedImages): void {
  describe('run as an unprivileged user with a read-only root file system', () => {
    const folder = temporaryDirectory('containers');
    const running: Container[] = [];
    const start = async (kind: keyof UnpackedImages, options: ContainerOptions): Promise<Container> => {
      const container = await startContainer(images()[kind], options);
      running.push(container);
      return container;
    };
    const outputs = (): string => running.map(({ process }) => process.output().slice(-3000)).join('\n──\n');
    let cluster: ControlPlane;
    let pods: Pods;
    let common: Record<string, string>;

    before(async () => {
      addAddresses();
      cluster = await startControlPlane({ host: API_SERVER_ADDRESS });
      pods = new Pods(cluster);
      await Promise.all([applyCustomResources(cluster), addNode(cluster)]);
      common = {
        WEIR_FLEET: 'images',
        WEIR_REDIS_URL: 'redis://:test-password@127.0.0.1:6379',
        WEIR_LOG_LEVEL: 'info',
      };
    });
    after(async () => {
      await pods?.close();
      await Promise.all(running.map(({ process }) => process.stop('SIGKILL')));
      await cluster?.close();
      await folder.close();
    });

    test('Redis starts with the command of the chart', async () => {
      const settings = join(folder.path, 'redis.conf');
      writeFileSync(
        settings,
        'bind 127.0.0.1\nrequirepass test-password\nappendonly yes\ndir /data\nmaxmemory-policy noeviction\n',
      );
      const redis = await start('redis', {
        name: 'redis',
        args: ['redis-server', '/etc/redis/redis.conf'],
        readOnlyMounts: { '/etc/redis/redis.conf': settings },
        writableFolders: ['/data'],
        user: REDIS_UID,
        readyWhen: /Ready to accept connections/,
      });
      assert.equal(userOf(redis), REDIS_UID);
      assert.equal(redis.exec('redis-cli', '-a', 'test-password', '--no-auth-warning', 'ping').trim(), 'PONG');
    });

    test('the proxy serves port 80 with a single capability', async (t) => {
      const kubeconfig = join(folder.path, 'kubeconfig');
      copyFileSync(cluster.kubeconfig, kubeconfig);
      chmodSync(kubeconfig, 0o644);
      const settings = {
        ...common,
        KUBECONFIG: '/etc/weir/kubeconfig',
        WEIR_CLASSLESS: 'true',
        WEIR_NAMESPACE: 'kube-system',
      };
      let begun = performance.now();
      const controller = await start('controller', {
        name: 'controller',
        env: { ...settings, WEIR_ADMIN: 'off', WEIR_SERVICE_CIDRS: '10.96.0.0/16' },
        readOnlyMounts: { '/etc/weir/kubeconfig': kubeconfig },
        readyWhen: /routing table published/,
      });
      t.diagnostic(`the controller published its first table after ${Math.round(performance.now() - begun)} ms`);
      begun = performance.now();
      const proxy = await start('proxy', {
        name: 'proxy',
        env: { ...common, WEIR_NODE: NODE, WEIR_WORKERS: '2', WEIR_PROBE_SOCKET: '/run/weir/probe.sock' },
        writableFolders: ['/run/weir'],
        capabilities: ['CAP_NET_BIND_SERVICE'],
        readyWhen: /the first routing table is in effect/,
      });
      t.diagnostic(`the proxy served its first table after ${Math.round(performance.now() - begun)} ms`);
      await cluster.kubectl('apply', '-f', join(root, 'e2e/manifests/shop.yaml'));
      await pods.http({ namespace: 'shop', name: 'web-1', labels: { app: 'web' }, number: 1, port: 8080 });
      const status = await waitForStatus(cluster, 'shop/web', (now) => addressesIn(now).length === 1).catch((error) => {
        throw new Error(`${error.message}\n${outputs()}`);
      });
      assert.deepEqual(addressesIn(status), [nodeAddress(NODE)]);
      await eventually(() => fetchOnce(`http://${nodeAddress(NODE)}:80/`), { timeoutMs: READY_TIMEOUT_MS });
      assert.deepEqual([userOf(proxy), capabilitiesOf(proxy)], [WEIR_UID, CAP_NET_BIND_SERVICE_BIT]);
      assert.deepEqual([userOf(controller), capabilitiesOf(controller)], [WEIR_UID, 0]);
      // Runs the command of the chart's startupProbe; `exec` throws if the command fails.
      proxy.exec('/usr/local/bin/node', '/weir/packages/proxy/dist/src/probe.js');
    });

    test('the proxy does not start without the capability, and runc reports the reason', async () => {
      const proxy = await start('proxy', { name: 'without', env: common, mayExit: true });
      const { code } = await proxy.process.exited;
      assert.notEqual(code, 0);
      assert.match(proxy.process.output(), /operation not permitted/);
    });

    test('the console responds, from the controller image', async () => {
      await start('controller', {
        name: 'console',
        args: ['/weir/packages/console/dist/src/main.js'],
        env: { ...common, WEIR_CONSOLE: '127.0.0.1:8686' },
      });
      await eventually(() => fetchOnce('http://127.0.0.1:8686/'), { timeoutMs: READY_TIMEOUT_MS });
      const weir = await start('controller', {
        name: 'weir-get',
        command: ['weir'],
        args: ['get', 'services', '-o', 'json'],
        env: { WEIR_SERVER: 'http://127.0.0.1:8686' },
        mayExit: true,
      });
      assert.equal((await weir.process.exited).code, 0, weir.process.output());
      const { items } = JSON.parse(weir.process.stdout()) as { items: { name: string; state: string }[] };
      assert.deepEqual(
        items.map(({ name, state }) => [name, state]),
        [['web', 'Programmed']],
      );
    });

    test('the weir command prints its version and translates, without a shell', async () => {
      const run = async (name: string, ...args: string[]): Promise<string> => {
        const readOnlyMounts = { '/manifests': join(root, 'docs/examples') };
        const weir = await start('controller', {
          name,
          command: ['/usr/local/bin/weir'],
          args,
          readOnlyMounts,
          mayExit: true,
        });
        assert.equal((await weir.process.exited).code, 0, weir.process.output());
        return weir.process.stdout();
      };
      assert.match(await run('weir-version', '--version'), /^\d+\.\d+\.\d+/);
      const dryRun = JSON.parse(
        await run('weir-translate', 'translate', '-f', '/manifests', '--classless', '-o', 'json'),
      );
      assert.ok(dryRun.statuses.length > 0);
    });

    test('each process exits after SIGTERM', async () => {
      for (const { process } of running) {
        const exit = await process.stop('SIGTERM');
        assert.equal(exit.signal, null);
      }
    });
  });
}

function addAddresses(): void {
  const lines = [
    'link set lo up',
    ...[API_SERVER_ADDRESS, nodeAddress(NODE), podAddress(1)].map((each) => `address add ${each} dev lo`),
  ];
  execFileSync(programPath('ip'), ['-batch', '-'], {
    input: `${lines.join('\n')}\n`,
    stdio: ['pipe', 'ignore', 'inherit'],
  });
}

async function addNode({ kubectl }: ControlPlane): Promise<void> {
  const node = { apiVersion: 'v1', kind: 'Node', metadata: { name: NODE, labels: { role: 'loadbalancer' } } };
  await kubectl('apply', '-f', '-', { stdin: JSON.stringify(node) });
  const status = { addresses: [{ type: 'InternalIP', address: nodeAddress(NODE) }] };
  await kubectl('patch', 'node', NODE, '--subresource=status', '-p', JSON.stringify({ status }));
}

function userOf(container: Container): number {
  return Number(/^Uid:\s+(\d+)/m.exec(container.procStatus())?.[1]);
}

function capabilitiesOf(container: Container): number {
  const fields = ['CapPrm', 'CapEff', 'CapBnd'].map(
    (name) => new RegExp(`^${name}:\\s+(\\w+)`, 'm').exec(container.procStatus())?.[1],
  );
  return fields.reduce((all, field) => all | Number.parseInt(field ?? '', 16), 0);
}

function fetchOnce(url: string): Promise<void> {
  return new Promise((resolve, reject) => {
    get(url, { agent: false }, (response) => {
      response.resume();
      if (response.statusCode === 200) resolve();
      else reject(new Error(`${url} responded with ${response.statusCode}`));
    }).once('error', reject);
  });
}
