import type { Ports } from './subject.ts';

/** Two Services without selector, and slices that point at the backends on loopback. */
export function manifestsFor(ports: Ports, backends: Ports): string {
  return [serviceFor('answers', ports.answers, backends.answers), serviceFor('bulk', ports.bulk, backends.bulk)].join(
    '---\n',
  );
}

function serviceFor(name: string, port: number, target: number): string {
  return `apiVersion: v1
kind: Service
metadata: {name: ${name}, namespace: bench}
spec:
  type: LoadBalancer
  loadBalancerClass: weir.dev/weir
  ports: [{name: tcp, port: ${port}, targetPort: ${target}}]
---
apiVersion: discovery.k8s.io/v1
kind: EndpointSlice
metadata: {name: ${name}-1, namespace: bench, labels: {kubernetes.io/service-name: ${name}}}
addressType: IPv4
ports: [{name: tcp, port: ${target}, protocol: TCP}]
endpoints: [{addresses: [127.0.0.1], conditions: {ready: true}}]
`;
}
