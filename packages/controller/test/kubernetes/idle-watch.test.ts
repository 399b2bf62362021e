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

const MAPS = { path: '/api/v1/namespaces/quiet/configmaps', query: {} };
/** Far below what bookmarks take. */
const SILENCE_MS = 300;

describe(
  'a watch of what does not change',
  requireProgram('etcd', 'kube-apiserver', 'kube-controller-manager', 'kubectl'),
  () => {
    let plane: ControlPlane;
    before(async () => {
      plane = await startControlPlane();
      await plane.kubectl('create', 'namespace', 'quiet');
    });
    after(() => plane?.close());

    test('is asked for again when nothing was heard for long; that is no failure, and nothing is missed', async () => {
      await using watching = watch(loadKubeConfig(plane.kubeconfig), { watchIdleTimeoutMs: SILENCE_MS });
      await eventually(() => assert.ok(watching.opened() >= 4, `${watching.opened()} times`));
      await plane.kubectl('create', 'configmap', '-n', 'quiet', 'seen');
      await eventually(() => assert.ok(watching.names().includes('seen')));
      assert.deepEqual(watching.failures(), []);
    });

    test('over a connection that is dead without a word is noticed, and heals', async () => {
      const { port } = new URL(plane.server);
      await using relay = await startFreezableTcpProxy(Number(port));
      const config = loadKubeConfig(plane.kubeconfig);
      config.clusters = config.clusters.map((each) => ({ ...each, server: `https://127.0.0.1:${relay.port}` }));
      await using watching = watch(config, { watchIdleTimeoutMs: SILENCE_MS, timeoutMs: 2_000 });
      await eventually(() => assert.ok(watching.opened() >= 1));
      relay.freeze();
      await eventually(() => assert.match(watching.failures().join('\n'), /did not answer in time/));
      await plane.kubectl('create', 'configmap', '-n', 'quiet', 'meanwhile');
      relay.thaw();
      await eventually(() => assert.ok(watching.names().includes('meanwhile')));
    });

    test('has its connection probed by the kernel', async () => {
      await using watching = watch(loadKubeConfig(plane.kubeconfig), { watchIdleTimeoutMs: 60_000 });
      await eventually(() => assert.equal(watching.opened(), 1));
      const port = Number(new URL(plane.server).port);
      await eventually(() => {
        const timers = timersOfConnectionsTo(port);
        assert.ok(timers.length > 0);
        assert.deepEqual(new Set(timers), new Set([KEEP_ALIVE]));
      });
    });
  },
);

const eventually = (assertion: () => void): Promise<void> => eventuallyWithin(assertion, { timeoutMs: 30_000 });

interface Watching extends AsyncDisposable {
  readonly opened: () => number;
  readonly names: () => readonly string[];
  readonly failures: () => readonly string[];
}

function watch(config: KubeConfig, times: KubeApiOptions): Watching {
  const api = new KubeApi(config, times);
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
  const running = reflect({ api: counting, ...MAPS, target, clock: systemClock, log: silentLogger() }, closing.signal);
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

/** Which timer of the kernel runs for a connection, as /proc/net/tcp numbers them. */
const KEEP_ALIVE = '02';
const ESTABLISHED = '01';

/** Of this process, over IPv4. */
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
      return []; // closed since
    }
  });
  return new Set(inodes);
}
