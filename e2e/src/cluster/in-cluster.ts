// What tests on the cluster do with kubectl, whoever installed Weir there.
import type { Cluster } from '@weir/testkit';

export interface InCluster {
  readonly cluster: Cluster;
  /** Of the nodes that carry traffic, which is what is published. */
  readonly addresses: readonly string[];
  apply(...objects: readonly object[]): Promise<void>;
  /** Changes the `spec` of a Service, as `kubectl edit` does; lists are replaced. */
  change(path: string, spec: object): Promise<void>;
}

export function inCluster(cluster: Cluster): InCluster {
  return {
    cluster,
    addresses: cluster.nodes.map(({ address }) => address),
    async apply(...objects) {
      const list = { apiVersion: 'v1', kind: 'List', items: objects };
      await cluster.kubectl('apply', '-f', '-', { stdin: JSON.stringify(list) });
    },
    async change(path, spec) {
      const [namespace = '', name = ''] = path.split('/');
      const patch = JSON.stringify({ spec });
      await cluster.kubectl('patch', 'service', name, '-n', namespace, '--type=merge', '-p', patch);
    },
  };
}
