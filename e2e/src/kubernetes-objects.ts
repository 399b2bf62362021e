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

/** Waits until the status of a Service is as `isRight` wants it, and returns it. */
export async function statusWhen(
  cluster: ControlPlane,
  path: string,
  isRight: (status: ServiceStatus) => boolean,
): Promise<ServiceStatus> {
  let status: ServiceStatus = {};
  await eventually(
    async () => {
      status = await serviceStatus(cluster, path);
      if (!isRight(status)) throw new Error(`status of Service ${path} is ${JSON.stringify(status, null, 1)}`);
    },
    { timeoutMs: 20_000, intervalMs: 100 },
  );
  return status;
}
