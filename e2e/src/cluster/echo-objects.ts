// What a tenant would apply: pods that say their names, and a Service for them.
import { ECHO_IMAGE } from '@weir/testkit';

/** Of every pod, TCP and UDP. */
const ECHO_PORT = 7000;

export interface EchoPodOptions {
  readonly namespace: string;
  readonly replicas: number;
  /** How long a pod that is to go still answers, so that the news of it arrives first: a preStop hook. */
  readonly preStopSeconds?: number;
}

export function plainNamespace(name: string): object {
  return { apiVersion: 'v1', kind: 'Namespace', metadata: { name } };
}

/** Spread over the nodes. */
export function echoPods({ namespace, replicas, preStopSeconds }: EchoPodOptions): object {
  const labels = { app: 'echo' };
  const container = {
    name: 'echo',
    image: ECHO_IMAGE,
    imagePullPolicy: 'Never',
    args: [String(ECHO_PORT)],
    readinessProbe: { tcpSocket: { port: ECHO_PORT }, periodSeconds: 1 },
    ...(preStopSeconds === undefined ? {} : { lifecycle: { preStop: { sleep: { seconds: preStopSeconds } } } }),
  };
  const spread = { maxSkew: 1, topologyKey: 'kubernetes.io/hostname', whenUnsatisfiable: 'ScheduleAnyway' };
  return {
    apiVersion: 'apps/v1',
    kind: 'Deployment',
    metadata: { namespace, name: 'echo' },
    spec: {
      replicas,
      selector: { matchLabels: labels },
      strategy: { type: 'RollingUpdate', rollingUpdate: { maxUnavailable: 0, maxSurge: 1 } },
      template: {
        metadata: { labels },
        spec: {
          automountServiceAccountToken: false,
          terminationGracePeriodSeconds: 10,
          topologySpreadConstraints: [{ ...spread, labelSelector: { matchLabels: labels } }],
          containers: [container],
        },
      },
    },
  };
}

export interface PortSpec {
  readonly name: string;
  readonly port: number;
  readonly protocol?: 'TCP' | 'UDP';
}

export function servicePort({ name, port, protocol = 'TCP' }: PortSpec): object {
  return { name, port, protocol, targetPort: ECHO_PORT };
}

export function echoService({
  namespace,
  ports,
  spec = {},
}: {
  readonly namespace: string;
  readonly ports: readonly PortSpec[];
  readonly spec?: object;
}): object {
  return {
    apiVersion: 'v1',
    kind: 'Service',
    metadata: { namespace, name: 'echo' },
    spec: {
      type: 'LoadBalancer',
      allocateLoadBalancerNodePorts: false,
      selector: { app: 'echo' },
      ports: ports.map(servicePort),
      ...spec,
    },
  };
}
