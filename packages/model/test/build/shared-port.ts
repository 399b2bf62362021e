// A fleet that shares port 443, and Services that name their hosts.
import {
  DEFAULT_FLEET_SETTINGS,
  entriesOf,
  type ServiceObject,
  type Snapshot,
  type Translation,
  UNRESTRICTED_GRANTS,
} from '@weir/model';
import { namespace, policy, port, service, team } from './snapshot.ts';
import { translateAfter, translateFresh } from './translation.ts';

export const sharedPortSettings: Snapshot['settings'] = {
  ...DEFAULT_FLEET_SETTINGS,
  sharedPorts: [443],
  nodesPerService: 1,
};
export const policyWithHosts = (name: string, allowedHosts: readonly string[]): Snapshot['policies'][number] =>
  policy(name, { namespaceSelector: team(name), grants: { ...UNRESTRICTED_GRANTS, allowedHosts } });
/** Of a policy of its own; c may have no hosts. */
const fleet = {
  settings: sharedPortSettings,
  namespaces: ['a', 'b', 'c'].map((name) => namespace(name, { team: name })),
  policies: [
    policyWithHosts('a', ['*.shop.example', 'api.example']),
    policyWithHosts('b', ['*.shop.example', '*.b.example']),
  ],
};
export const serviceOn = (
  path: string,
  hosts: string | undefined,
  { ports = [443], more = {} }: { readonly ports?: readonly number[]; readonly more?: Partial<ServiceObject> } = {},
): ServiceObject =>
  service(path, {
    ports: ports.map((number) => port(number, { name: `p${number}` })),
    ...more,
    annotations: {
      ...(hosts !== undefined && { 'weir.dev/hosts': hosts, 'weir.dev/tls-passthrough': 'true' }),
      ...more.annotations,
    },
  });
export const translateFirst = (parts: Partial<Snapshot>): Translation => translateFresh({ ...fleet, ...parts });
export const translateLater = (before: Translation, parts: Partial<Snapshot>): Translation =>
  translateAfter(before, { ...fleet, ...parts });
export const sharersOf = (translation: Translation): string[] =>
  entriesOf(translation.table, 'listener')
    .filter(({ shared }) => shared === true)
    .map((listener) => `${listener.service} ${listener.node}:${listener.port}`)
    .sort();
