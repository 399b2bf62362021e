// The subjects of the benchmark `limits`: three processes each. Weir's proxies share one limit; HAProxy and Envoy limit per process, so
// that each of their processes has a third of the limit.
import { randomUUID } from 'node:crypto';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { freePort, spawnProcess, temporaryDirectory } from '@weir/testkit';
import { type ProgramName, programPath } from '@weir/tools';
import { RpcProcess } from '../processes/rpc.ts';
import { startProxyUntilServing } from '../processes/weir-proxy.ts';
import { NAMESPACE_NODES, type NodeAddress, type SocketAddress, servicePort } from '../propagation/topology.ts';
import type { LimitsControllerRpc, LimitsLayout } from './limits-controller-process.ts';
import { LIMIT, PROXIES } from './phases.ts';

export const LIMIT_SUBJECTS = ['weir', 'haproxy', 'envoy'] as const;
export type LimitSubjectName = (typeof LIMIT_SUBJECTS)[number];

export type LimitSubject = AsyncDisposable & {
  readonly proxies: readonly SocketAddress[];
  /** Ends the process of the last proxy with SIGKILL. */
  killLast(): Promise<void>;
  restartLast(): Promise<void>;
};

export type LimitSubjectOptions = {
  readonly redis: string;
  /** The compiled program of Weir's proxy. */
  readonly program: string;
  readonly endpoint: SocketAddress;
};

type StartedProcess = AsyncDisposable & { readonly pid: number };

export function startLimitSubject(name: LimitSubjectName, options: LimitSubjectOptions): Promise<LimitSubject> {
  switch (name) {
    case 'weir':
      return startWeir(options);
    case 'haproxy':
      return startPeers(options.endpoint, 'haproxy', {
        file: 'haproxy.cfg',
        configuration: haproxyConfiguration,
        args: (path) => ['-db', '-f', path],
      });
    case 'envoy':
      return startPeers(options.endpoint, 'envoy', {
        file: 'envoy.json',
        configuration: envoyConfiguration,
        args: (path) => ['--config-path', path, '--concurrency', '1', '--disable-hot-restart', '--log-level', 'off'],
      });
  }
}

async function startWeir({ redis, program, endpoint }: LimitSubjectOptions): Promise<LimitSubject> {
  await using cleanup = new AsyncDisposableStack();
  const fleet = `bench-${randomUUID().slice(0, 8)}`;
  const nodes = NAMESPACE_NODES;
  const layout: LimitsLayout = { nodes, endpoint };
  const controller = cleanup.use(
    new RpcProcess<LimitsControllerRpc>(new URL('./limits-controller-process.ts', import.meta.url), [
      redis,
      fleet,
      JSON.stringify(layout),
    ]),
  );
  await controller.call('start');
  const start = (index: number) => {
    const { name, address } = nodes[index] as NodeAddress;
    // The controller checks at this address whether a silent proxy has ended. It trusts no loopback address of another host.
    return startProxyUntilServing({ program, redis, fleet, node: name, workers: 1, adminHost: address });
  };
  const group = cleanup.use(await startGroup(start));
  const started = cleanup.move();
  return {
    ...group,
    proxies: nodes.map(({ address }) => ({ host: address, port: servicePort(0) })),
    [Symbol.asyncDispose]: () => started.disposeAsync(),
  };
}

interface PeerProgram {
  readonly file: string;
  configuration(proxy: SocketAddress, endpoint: SocketAddress): string;
  args(path: string): string[];
}

async function startPeers(endpoint: SocketAddress, name: ProgramName, peer: PeerProgram): Promise<LimitSubject> {
  await using cleanup = new AsyncDisposableStack();
  const directory = cleanup.use(temporaryDirectory(`bench-limits-${name}`));
  const proxies: SocketAddress[] = [];
  for (let index = 0; index < PROXIES; index += 1) proxies.push({ host: '127.0.0.1', port: await freePort() });
  const start = (index: number) => {
    const path = join(directory.path, `${index}-${peer.file}`);
    const proxy = proxies[index] as SocketAddress;
    writeFileSync(path, peer.configuration(proxy, endpoint));
    return spawnPeer(name, peer.args(path));
  };
  const group = cleanup.use(await startGroup(start));
  const started = cleanup.move();
  return { ...group, proxies, [Symbol.asyncDispose]: () => started.disposeAsync() };
}

async function spawnPeer(name: ProgramName, args: string[]): Promise<StartedProcess> {
  const child = await spawnProcess({ command: programPath(name), args, name, mayExit: true });
  return { pid: child.pid, [Symbol.asyncDispose]: () => child.close() };
}

/** Starts `PROXIES` processes, of which the last can be killed and started again. */
async function startGroup(start: (index: number) => Promise<StartedProcess>) {
  const processes: StartedProcess[] = [];
  const last = PROXIES - 1;
  for (let index = 0; index < PROXIES; index += 1) processes.push(await start(index));
  return {
    async killLast(): Promise<void> {
      process.kill(processes[last]?.pid ?? Number.NaN, 'SIGKILL');
      await processes[last]?.[Symbol.asyncDispose]();
    },
    async restartLast(): Promise<void> {
      processes[last] = await start(last);
    },
    async [Symbol.asyncDispose](): Promise<void> {
      for (const each of processes) await each[Symbol.asyncDispose]();
    },
  };
}

function haproxyConfiguration({ host, port }: SocketAddress, endpoint: SocketAddress): string {
  return `
global
  nbthread 1
  maxconn 2000
defaults
  mode tcp
  backlog 4096
  timeout connect 5s
  timeout client 1m
  timeout server 1m
frontend limited
  bind ${host}:${port}
  tcp-request connection reject if { fe_sess_rate ge ${LIMIT / PROXIES} }
  default_backend endpoint
backend endpoint
  server endpoint ${endpoint.host}:${endpoint.port}
`;
}

const FILTERS = 'type.googleapis.com/envoy.extensions.filters.network';
/** Envoy refills the bucket at least 50 ms apart. A tenth of the limit at a time is closest to a steady rate. */
const FILLS_PER_SECOND = 10;

function envoyConfiguration({ host, port }: SocketAddress, endpoint: SocketAddress): string {
  const perFill = LIMIT / PROXIES / FILLS_PER_SECOND;
  const address = (at: SocketAddress) => ({ socket_address: { address: at.host, port_value: at.port } });
  const limit = {
    '@type': `${FILTERS}.local_ratelimit.v3.LocalRateLimit`,
    stat_prefix: 'limited',
    token_bucket: { max_tokens: perFill, tokens_per_fill: perFill, fill_interval: `${1 / FILLS_PER_SECOND}s` },
  };
  const proxy = { '@type': `${FILTERS}.tcp_proxy.v3.TcpProxy`, stat_prefix: 'limited', cluster: 'endpoint' };
  return JSON.stringify({
    static_resources: {
      listeners: [
        {
          name: 'limited',
          address: address({ host, port }),
          filter_chains: [
            {
              filters: [
                { name: 'envoy.filters.network.local_ratelimit', typed_config: limit },
                { name: 'envoy.filters.network.tcp_proxy', typed_config: proxy },
              ],
            },
          ],
        },
      ],
      clusters: [
        {
          name: 'endpoint',
          type: 'STATIC',
          connect_timeout: '5s',
          load_assignment: {
            cluster_name: 'endpoint',
            endpoints: [{ lb_endpoints: [{ endpoint: { address: address(endpoint) } }] }],
          },
        },
      ],
    },
  });
}
