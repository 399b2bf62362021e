// What somebody sees who leaves `kubectl get services --watch` open: each change, also one that is gone a moment later.
import { type ControlPlane, eventually, programPath, spawnProcess } from '@weir/testkit';
import { addressesIn, type ServiceStatus } from './kubernetes-objects.ts';

export interface WatchedServices {
  /** Waits until the status of the Service `namespace/name` holds, and returns what the assertion returned. */
  when<T>(path: string, assertion: (status: ServiceStatus) => T): Promise<T>;
  /** The addresses of the Service from the first on, oldest first. */
  addressesOf(path: string): readonly (readonly string[])[];
  close(): Promise<void>;
}

export async function watchServices(cluster: ControlPlane): Promise<WatchedServices> {
  const watch = await spawnProcess({
    command: programPath('kubectl'),
    args: ['get', 'services', '-A', '--watch', `-o=jsonpath=${LINE}`],
    env: { ...process.env, KUBECONFIG: cluster.kubeconfig },
    name: 'kubectl get services --watch',
  });
  const statusesOf = (path: string): ServiceStatus[] => {
    const lines = watch.stdout().split('\n').slice(0, -1);
    const own = lines.filter((line) => line.startsWith(`${path} `));
    return own.map((line) => JSON.parse(line.slice(path.length)) as ServiceStatus);
  };
  return {
    when: (path, assertion) =>
      eventually(() => assertion(statusesOf(path).at(-1) ?? {}), { timeoutMs: 60_000, intervalMs: 50 }),
    addressesOf(path) {
      const shown = statusesOf(path).map((status) => addressesIn(status));
      return shown.filter((addresses, index) => addresses.join() !== (shown[index - 1] ?? []).join());
    },
    close: () => watch.close(),
  };
}

const LINE = '{.metadata.namespace}/{.metadata.name} {.status}{"\\n"}';
