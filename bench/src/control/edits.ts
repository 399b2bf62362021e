import type { SourceSnapshot } from '@weir/controller';
import type { SliceEndpoint } from '@weir/model';
import { endpointAt, podAddress, podFor, podsPerService } from './cluster.ts';
import type { ChangeScenario } from './scenario-name.ts';

/** What the next state of the cluster is; objects that say the same stay the same, as in a source. */
export type Edit = (cluster: SourceSnapshot) => SourceSnapshot;

const tenantsAtOnce = 100;
/** A prime, so that a round has another Service than the one before, wherever it lies. */
const stride = 7_919;

/** What happens in a round of a scenario, one after the other; each changes the table. */
export function editsFor(scenario: ChangeScenario, round: number, cluster: SourceSnapshot): readonly Edit[] {
  const index = (round * stride) % cluster.services.length;
  switch (scenario) {
    case 'endpoint':
      return [toggleEndpoint(index)];
    case 'service':
      return [changeAlgorithm(index)];
    case 'tenants':
      return [(before) => firstOfEachTenant(before).reduce((after, each) => toggleEndpoint(each)(after), before)];
    case 'rollout':
      return at(cluster.slices, index).endpoints.flatMap(({ ready }, pod) => [
        // one that was not ready before is not missed when it goes
        ...(ready ? [withEndpoint(index, pod, (old) => ({ ...old, ready: false, terminating: true }))] : []),
        replacePod(index, pod, round + 1),
      ]);
  }
}

function toggleEndpoint(service: number): Edit {
  return withEndpoint(service, 0, (old) => ({ ...old, ready: !old.ready, serving: !old.ready }));
}

function withEndpoint(service: number, pod: number, edit: (old: SliceEndpoint) => SliceEndpoint): Edit {
  return (cluster) => {
    const slice = at(cluster.slices, service);
    const endpoints = slice.endpoints.with(pod, edit(at(slice.endpoints, pod)));
    return { ...cluster, slices: cluster.slices.with(service, { ...slice, endpoints }) };
  };
}

function replacePod(service: number, pod: number, generation: number): Edit {
  const address = podAddress(service, pod, generation);
  const inSlice = withEndpoint(service, pod, () => endpointAt(address));
  return (cluster) => {
    const young = podFor(at(cluster.services, service), `${pod}-${generation}`, address);
    return inSlice({ ...cluster, pods: cluster.pods.with(service * podsPerService + pod, young) });
  };
}

function changeAlgorithm(service: number): Edit {
  return (cluster) => {
    const old = at(cluster.services, service);
    const algorithm = old.annotations['weir.dev/algorithm'] === 'round-robin' ? 'random' : 'round-robin';
    const young = { ...old, annotations: { 'weir.dev/algorithm': algorithm } };
    return { ...cluster, services: cluster.services.with(service, young) };
  };
}

function firstOfEachTenant({ services }: SourceSnapshot): number[] {
  const firsts = services.flatMap(({ namespace }, index) =>
    services[index - 1]?.namespace === namespace ? [] : [index],
  );
  return firsts.slice(0, tenantsAtOnce);
}

function at<T>(list: readonly T[], index: number): T {
  const item = list[index];
  if (item === undefined) throw new Error(`there is no number ${index}`);
  return item;
}
