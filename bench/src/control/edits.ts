import type { SourceSnapshot } from '@weir/controller';
import type { SliceEndpoint } from '@weir/model';
import { PODS_PER_SERVICE, podAddress, podFor, readyEndpoint } from './in-memory-cluster.ts';
import type { ChangeScenario } from './options.ts';

/** Returns a copy of the cluster with one change. Unchanged objects are the same JavaScript objects as before, as in a real source. */
export type ClusterEdit = (cluster: SourceSnapshot) => SourceSnapshot;

const TENANTS_PER_EDIT = 100;
/** Consecutive rounds change Services whose indexes differ by this number. A prime number, so that each Service gets its turn. */
const SERVICE_STRIDE = 7_919;

/** Returns the edits of one round of a scenario, in the order to apply them. Each edit changes the routing table. */
export function editsFor(scenario: ChangeScenario, round: number, cluster: SourceSnapshot): readonly ClusterEdit[] {
  const index = (round * SERVICE_STRIDE) % cluster.services.length;
  switch (scenario) {
    case 'endpoint':
      return [toggleEndpoint(index)];
    case 'service':
      return [changeAlgorithm(index)];
    case 'tenants':
      return [
        (before) => firstServiceOfEachTenant(before).reduce((after, service) => toggleEndpoint(service)(after), before),
      ];
    case 'rollout':
      return itemAt(cluster.slices, index).endpoints.flatMap(({ ready }, pod) => [
        // an endpoint that is not ready is not marked as terminating, because this mark would not change the table
        ...(ready ? [withEndpoint(index, pod, (old) => ({ ...old, ready: false, terminating: true }))] : []),
        replacePod(index, pod, round + 1),
      ]);
  }
}

function toggleEndpoint(service: number): ClusterEdit {
  return withEndpoint(service, 0, (old) => ({ ...old, ready: !old.ready, serving: !old.ready }));
}

function withEndpoint(service: number, pod: number, edit: (old: SliceEndpoint) => SliceEndpoint): ClusterEdit {
  return (cluster) => {
    const slice = itemAt(cluster.slices, service);
    const endpoints = slice.endpoints.with(pod, edit(itemAt(slice.endpoints, pod)));
    return { ...cluster, slices: cluster.slices.with(service, { ...slice, endpoints }) };
  };
}

function replacePod(service: number, pod: number, generation: number): ClusterEdit {
  const address = podAddress(service, pod, generation);
  const inSlice = withEndpoint(service, pod, () => readyEndpoint(address));
  return (cluster) => {
    const newPod = podFor(itemAt(cluster.services, service), `${pod}-${generation}`, address);
    return inSlice({ ...cluster, pods: cluster.pods.with(service * PODS_PER_SERVICE + pod, newPod) });
  };
}

function changeAlgorithm(service: number): ClusterEdit {
  return (cluster) => {
    const old = itemAt(cluster.services, service);
    const algorithm = old.annotations['weir.dev/algorithm'] === 'round-robin' ? 'random' : 'round-robin';
    const changed = { ...old, annotations: { 'weir.dev/algorithm': algorithm } };
    return { ...cluster, services: cluster.services.with(service, changed) };
  };
}

function firstServiceOfEachTenant({ services }: SourceSnapshot): number[] {
  const firstServices = services.flatMap(({ namespace }, index) =>
    services[index - 1]?.namespace === namespace ? [] : [index],
  );
  return firstServices.slice(0, TENANTS_PER_EDIT);
}

function itemAt<T>(list: readonly T[], index: number): T {
  const item = list[index];
  if (item === undefined) throw new Error(`no item has the index ${index}`);
  return item;
}
