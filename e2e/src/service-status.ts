import assert from 'node:assert/strict';
import { eventually, spawnProcess } from '@weir/testkit';
import { type ControlPlane, programPath } from '@weir/tools';

// Waits for the status of a Service. `waitForStatus` polls the status; `watchServices` also sees transient states.
export interface ServiceStatus {
  readonly loadBalancer?: {
    readonly ingress?: readonly {
      readonly ip: string;
      readonly ipMode?: string;
      readonly ports?: readonly { readonly port: number; readonly protocol: string; readonly error?: string }[];
    }[];
  };
  readonly conditions?: readonly {
    readonly type: string;
    readonly status: string;
    readonly reason: string;
    readonly message: string;
  }[];
}

export async function serviceStatus(cluster: ControlPlane, path: string): Promise<ServiceStatus> {
  const [namespace = '', name = ''] = path.split('/');
  const text = await cluster.kubectl('get', 'service', name, '-n', namespace, '-o', 'json');
  return (JSON.parse(text) as { status: ServiceStatus }).status;
}

export function addressesIn(status: ServiceStatus): readonly string[] {
  return (status.loadBalancer?.ingress ?? []).map(({ ip }) => ip);
}

export function conditionIn(
  status: ServiceStatus,
  type: string,
): { status: string; reason: string; message: string } | undefined {
  return status.conditions?.find((condition) => condition.type === `weir.dev/${type}`);
}

/** Applies a merge patch to the Service `namespace/name`. */
export async function patchService(cluster: ControlPlane, path: string, change: object): Promise<void> {
  const [namespace = '', name = ''] = path.split('/');
  await cluster.kubectl('patch', 'service', name, '-n', namespace, '--type=merge', '-p', JSON.stringify(change));
}

/** Waits up to 60 s, because four clusters may start at the same time on two cores. */
const STATUS_WAIT = { timeoutMs: 60_000, intervalMs: 100 };

/** Polls the status of the Service `namespace/name` until `isRight` accepts the status, and returns the status. */
export async function waitForStatus(
  cluster: ControlPlane,
  path: string,
  isRight: (status: ServiceStatus) => boolean,
): Promise<ServiceStatus> {
  let status: ServiceStatus = {};
  await eventually(async () => {
    status = await serviceStatus(cluster, path);
    if (!isRight(status)) throw new Error(`status of Service ${path} is ${JSON.stringify(status, null, 1)}`);
  }, STATUS_WAIT);
  return status;
}

/** Waits until the Service has exactly these addresses. */
export function waitForAddresses(
  cluster: ControlPlane,
  path: string,
  addresses: readonly string[],
): Promise<ServiceStatus> {
  return waitForStatus(cluster, path, (now) => addressesIn(now).join() === [...addresses].sort().join());
}

/** Waits until the condition Accepted of the Service is False. Returns the condition as `reason: message`. */
export async function waitForRefusal(cluster: ControlPlane, path: string): Promise<string> {
  const status = await waitForStatus(cluster, path, (now) => conditionIn(now, 'Accepted')?.status === 'False');
  const { reason, message } = conditionIn(status, 'Accepted') ?? {};
  return `${reason}: ${message}`;
}

// Follows `kubectl get services --watch` and records each change, including transient changes.
export interface ServiceWatch {
  /** Waits until the assertion about the status of the Service `namespace/name` holds. Returns the result of the assertion. */
  waitFor<T>(path: string, assertion: (status: ServiceStatus) => T): Promise<T>;
  /** Waits until the condition of this type has a status and reason such as `False QuotaExceeded`. Returns the condition's message. */
  waitForCondition(path: string, type: string, wanted: string): Promise<string>;
  /** Waits until the Service has no condition of this type. */
  waitForNoCondition(path: string, type: string): Promise<void>;
  /** Waits until the Service has exactly these addresses. */
  waitForAddresses(path: string, addresses: readonly string[]): Promise<void>;
  /** Returns all lists of addresses that the Service has had, oldest first. */
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
      const history = statusesOf(path).map((status) => addressesIn(status));
      return history.filter((addresses, index) => addresses.join() !== (history[index - 1] ?? []).join());
    },
    close: () => watch.close(),
  };
}

const LINE_TEMPLATE = '{.metadata.namespace}/{.metadata.name} {.status}{"\\n"}';
