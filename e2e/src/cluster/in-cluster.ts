// What tests on the cluster do with kubectl, whoever installed Weir there.
import type { Cluster } from '@weir/testkit';
import { patchService } from '../kubernetes-objects.ts';

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
    apply: cluster.apply,
    change: (path, spec) => patchService(cluster, path, { spec }),
  };
}
