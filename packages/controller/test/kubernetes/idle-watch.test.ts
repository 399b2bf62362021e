import assert from 'node:assert/strict';
import { readdirSync, readFileSync, readlinkSync } from 'node:fs';
import { after, before, describe, test } from 'node:test';
import type { KubeConfig } from '@kubernetes/client-node';
import { silentLogger, systemClock } from '@weir/runtime';
import { eventually as eventuallyWithin } from '@weir/testkit';
import { type ControlPlane, requireProgram, startControlPlane } from '@weir/tools';
import { KubeApi, type KubeApiOptions } from '../../src/kubernetes/kube-api.ts';
import type { KubeApiError } from '../../src/kubernetes/kube-api-error.ts';
import { loadKubeConfig } from '../../src/kubernetes/kube-config.ts';
import { reflect } from '../../src/watch/kubernetes/reflector.ts';
import { startFreezableTcpProxy } from '../fixtures/freezable-tcp-proxy.ts';

const CONFIG_MAPS = { path: '/api/v1/namespaces/quiet/configmaps', query: {} };
/** The idle timeout of the watch, far shorter than the interval of bookmarks. */
const IDLE_TIMEOUT_MS = 300;

describe('an idle watch', requireProgram('etcd', 'kube-apiserver', 'kube-controller-manager', 'kubectl'), () => {
  let plane: ControlPlane;
  before(async () => {
    plane = await startControlPlane();
    await plane.kubectl('create', 'namespace', 'quiet');
  });
  after(() => plane?.close());

  test('is opened again after its idle timeout, without a failure or a missed event', async () => {
    await using watching = startWatch(loadKubeConfig(plane.kubeconfig), { watchIdleTimeoutMs: IDLE_TIMEOUT_MS });
    await eventually(() => assert.ok(watching.opened() >= 4, `${watching.opened()} times`));
    await plane.kubectl('create', 'configmap', '-n', 'quiet', 'seen');
    await eventually(() => assert.ok(watching.names().includes('seen')));
    assert.deepEqual(watching.failures(), []);
  });

  test('notices a dead connection and recovers', async () => {
    const { port } = new URL(plane.server);
    await using relay = await startFreezableTcpProxy(Number(port));
    const config = loadKubeConfig(plane.kubeconfig);
    config.clusters = config.clusters.map((each) => ({ ...each, server: `https://127.0.0.1:${relay.port}` }));
    await using watching = startWatch(config, { watchIdleTimeoutMs: IDLE_TIMEOUT_MS, timeoutMs: 2_000 });
    await eventually(() => assert.ok(watching.opened() >= 1));
    relay.freeze();
    await eventually(() => assert.match(watching.failures().join('\n'), /did not answer in time/));
    await plane.kubectl('create', 'configmap', '-n', 'quiet', 'meanwhile');
    relay.thaw();
    await eventually(() => assert.ok(watching.names().includes('meanwhile')));
  });

  test('uses TCP keep-alive on its connection', async () => {
    await using watching = startWatch(loadKubeConfig(plane.kubeconfig), { watchIdleTimeoutMs: 60_000 });
    await eventually(() => assert.equal(watching.opened(), 1));
    const port = Number(new URL(plane.server).port);
    await eventually(() => {
      const timers = timersOfConnectionsTo(port);
      assert.ok(timers.length > 0);
      assert.deepEqual(new Set(timers), new Set([KEEP_ALIVE]));
    });
  });
});

const eventually = (assertion: () => void): Promise<void> => eventuallyWithin(assertion, { timeoutMs: 30_000 });

interface RecordedWatch extends AsyncDisposable {
  readonly opened: () => number;
  readonly names: () => readonly string[];
  readonly failures: () => readonly string[];
}

function startWatch(config: KubeConfig, options: KubeApiOptions): RecordedWatch {
  const api = new KubeApi(config, options);
  const closing = new AbortController();
  const names: string[] = [];
  const failures: string[] = [];
  let opened = 0;
  const counting = {
    request: api.request.bind(api),
    watch: (request: Parameters<KubeApi['watch']>[0]) =>
      api.watch({
        ...request,
        onOpen() {
          opened += 1;
          request.onOpen();
        },
      }),
  };
  const target = {
    listStarted() {},
    listCompleted() {},
    put: ({ metadata }: { readonly metadata?: unknown }) => void names.push((metadata as { name: string }).name),
    deleted() {},
    failureChanged: (error: KubeApiError | undefined) => void (error !== undefined && failures.push(error.message)),
  };
  const running = reflect(
    { api: counting, ...CONFIG_MAPS, target, clock: systemClock, log: silentLogger() },
    closing.signal,
  );
  return {
    opened: () => opened,
    names: () => names,
    failures: () => failures,
    async [Symbol.asyncDispose]() {
      closing.abort();
      await running;
      api.close();
    },
  };
}

/** The codes in /proc/net/tcp for the keep-alive timer and for an established connection. */
const KEEP_ALIVE = '02';
const ESTABLISHED = '01';

/** Returns the kernel timers of this process's IPv4 connections to the port. */
function timersOfConnectionsTo(port: number): string[] {
  const remote = `0100007F:${port.toString(16).toUpperCase().padStart(4, '0')}`;
  const own = ownSockets();
  return readFileSync('/proc/self/net/tcp', 'utf8')
    .split('\n')
    .map((line) => line.trim().split(/\s+/))
    .filter(([, , to, state, , , , , , inode = '']) => to === remote && state === ESTABLISHED && own.has(inode))
    .map(([, , , , , timer = '']) => timer.slice(0, 2));
}

function ownSockets(): ReadonlySet<string> {
  const inodes = readdirSync('/proc/self/fd').flatMap((fd) => {
    try {
      return /^socket:\[(\d+)\]$/.exec(readlinkSync(`/proc/self/fd/${fd}`))?.[1] ?? [];
    } catch {
      return []; // The descriptor was closed after `readdirSync`.
    }
  });
  return new Set(inodes);
}
