// What somebody sees who leaves `kubectl get services --watch` open: each change, also one that is gone a moment later.
import assert from 'node:assert/strict';
import { type ControlPlane, eventually, programPath, spawnProcess } from '@weir/testkit';
import { addressesIn, conditionIn, type ServiceStatus } from './kubernetes-objects.ts';

export interface ServiceWatch {
  /** Waits until the status of the Service `namespace/name` holds, and returns what the assertion returned. */
  waitFor<T>(path: string, assertion: (status: ServiceStatus) => T): Promise<T>;
  /** Waits until the condition has this status and reason, as `False QuotaExceeded`; returns its message. */
  waitForCondition(path: string, type: string, wanted: string): Promise<string>;
  /** Waits until it has no condition of this type. */
  waitForNoCondition(path: string, type: string): Promise<void>;
  /** Waits until these are its addresses. */
  waitForAddresses(path: string, addresses: readonly string[]): Promise<void>;
  /** The addresses of the Service from the first on, oldest first. */
  addressHistory(path: string): readonly (readonly string[])[];
  close(): Promise<void>;
}

export async function watchServices(cluster: ControlPlane): Promise<ServiceWatch> {
  const watch = await spawnProcess({
    command: programPath('kubectl'),
    args: ['get', 'services', '-A', '--watch', `-o=jsonpath=${LINE_TEMPLATE}`],
    env: { ...process.env, KUBECONFIG: cluster.kubeconfig },
    name: 'kubectl get services --watch',
  });
  const statusesOf = (path: string): ServiceStatus[] => {
    const lines = watch.stdout().split('\n').slice(0, -1);
    const own = lines.filter((line) => line.startsWith(`${path} `));
    return own.map((line) => JSON.parse(line.slice(path.length)) as ServiceStatus);
  };
  const waitFor: ServiceWatch['waitFor'] = (path, assertion) =>
    eventually(() => assertion(statusesOf(path).at(-1) ?? {}), { timeoutMs: 60_000, intervalMs: 50 });
  return {
    waitFor,
    waitForCondition: (path, type, wanted) =>
      waitFor(path, (status) => {
        const condition = conditionIn(status, type);
        assert.equal(`${condition?.status} ${condition?.reason}`, wanted, JSON.stringify(status));
        return condition?.message ?? '';
      }),
    waitForNoCondition: (path, type) => waitFor(path, (status) => assert.equal(conditionIn(status, type), undefined)),
    waitForAddresses: (path, addresses) => waitFor(path, (status) => assert.deepEqual(addressesIn(status), addresses)),
    addressHistory(path) {
      const shown = statusesOf(path).map((status) => addressesIn(status));
      return shown.filter((addresses, index) => addresses.join() !== (shown[index - 1] ?? []).join());
    },
    close: () => watch.close(),
  };
}

const LINE_TEMPLATE = '{.metadata.namespace}/{.metadata.name} {.status}{"\\n"}';
