// What a tenant would see with kubectl of its Service.
import { type ControlPlane, eventually } from '@weir/testkit';

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

/** A merge patch of the Service `namespace/name`. */
export async function patchService(cluster: ControlPlane, path: string, change: object): Promise<void> {
  const [namespace = '', name = ''] = path.split('/');
  await cluster.kubectl('patch', 'service', name, '-n', namespace, '--type=merge', '-p', JSON.stringify(change));
}

/** Four clusters may be starting on two cores. */
const STATUS_WAIT = { timeoutMs: 60_000, intervalMs: 100 };

/** Waits until the status of a Service is as `isRight` wants it, and returns it. */
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

/** Waits until these are its addresses. */
export function waitForAddresses(
  cluster: ControlPlane,
  path: string,
  addresses: readonly string[],
): Promise<ServiceStatus> {
  return waitForStatus(cluster, path, (now) => addressesIn(now).join() === [...addresses].sort().join());
}

/** Waits until it is not accepted; returns why, as `reason: message`. */
export async function waitForRefusal(cluster: ControlPlane, path: string): Promise<string> {
  const status = await waitForStatus(cluster, path, (now) => conditionIn(now, 'Accepted')?.status === 'False');
  const { reason, message } = conditionIn(status, 'Accepted') ?? {};
  return `${reason}: ${message}`;
}
