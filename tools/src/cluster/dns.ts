// Starts CoreDNS as a process beside the control plane. Pods reach CoreDNS through the Service kube-dns, as in other clusters.
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { type SpawnedProcess, spawnProcess } from '@weir/testkit';
import type { ControlPlane } from '../kubernetes/control-plane.ts';
import { programPath } from '../programs/require-program.ts';
import { API_SERVER_ADDRESS } from './network.ts';

/** Cluster IP of the Service kube-dns: the tenth address of the Service range, as is common in Kubernetes. */
export const DNS_ADDRESS = '10.96.0.10';

export async function startDns(control: ControlPlane, directory: string): Promise<SpawnedProcess> {
  const file = join(directory, 'Corefile');
  writeFileSync(file, corefile(control.kubeconfig));
  const dns = await spawnProcess({ command: programPath('coredns'), name: 'coredns', args: ['-conf', file] });
  await control.apply(...DNS_OBJECTS);
  return dns;
}

function corefile(kubeconfig: string): string {
  return `.:53 {
  errors
  ready 127.0.0.1:8181
  kubernetes cluster.local {
    kubeconfig ${kubeconfig}
  }
}
`;
}

const DNS_PORTS = [
  { name: 'dns', port: 53, protocol: 'UDP' },
  { name: 'dns-tcp', port: 53, protocol: 'TCP' },
];
const DNS_OBJECTS = [
  {
    apiVersion: 'v1',
    kind: 'Service',
    metadata: { name: 'kube-dns', namespace: 'kube-system' },
    spec: { clusterIP: DNS_ADDRESS, ports: DNS_PORTS },
  },
  {
    apiVersion: 'discovery.k8s.io/v1',
    kind: 'EndpointSlice',
    metadata: {
      name: 'kube-dns',
      namespace: 'kube-system',
      labels: { 'kubernetes.io/service-name': 'kube-dns' },
    },
    addressType: 'IPv4',
    endpoints: [{ addresses: [API_SERVER_ADDRESS] }],
    ports: DNS_PORTS,
  },
];
