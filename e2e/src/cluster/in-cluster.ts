// What tests on the cluster do with kubectl, whoever installed Weir there.
import type { Cluster } from '@weir/testkit';
import { patchService } from '../kubernetes-objects.ts';

export interface ClusterFleet {
  readonly cluster: Cluster;
  /** Of the nodes that carry traffic, which is what is published. */
  readonly addresses: readonly string[];
  apply(...objects: readonly object[]): Promise<void>;
  /** Changes the `spec` of a Service, as `kubectl edit` does; lists are replaced. */
  patchServiceSpec(path: string, spec: object): Promise<void>;
}

export function clusterFleet(cluster: Cluster): ClusterFleet {
  return {
    cluster,
    addresses: cluster.nodes.map(({ address }) => address),
    apply: cluster.apply,
    patchServiceSpec: (path, spec) => patchService(cluster, path, { spec }),
  };
}
