// A fleet that shares port 443, and Services that name their hosts.
import {
  DEFAULT_SETTINGS,
  entriesOf,
  OPEN_GRANTS,
  type ServiceObject,
  type Snapshot,
  type Translation,
} from '@weir/model';
import { namespace, policy, port, service, team } from './snapshot.ts';
import { fresh, next } from './translation.ts';

export const settings: Snapshot['settings'] = { ...DEFAULT_SETTINGS, sharedPorts: [443], nodesPerService: 1 };
export const granting = (name: string, allowedHosts: readonly string[]): Snapshot['policies'][number] =>
  policy(name, { namespaceSelector: team(name), grants: { ...OPEN_GRANTS, allowedHosts } });
/** Of a policy of its own; c may have no hosts. */
const world = {
  settings,
  namespaces: ['a', 'b', 'c'].map((name) => namespace(name, { team: name })),
  policies: [granting('a', ['*.shop.example', 'api.example']), granting('b', ['*.shop.example', '*.b.example'])],
};
export const on = (
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
export const first = (parts: Partial<Snapshot>): Translation => fresh({ ...world, ...parts });
export const later = (before: Translation, parts: Partial<Snapshot>): Translation =>
  next(before, { ...world, ...parts });
export const sharersOf = (translation: Translation): string[] =>
  entriesOf(translation.table, 'listener')
    .filter(({ shared }) => shared === true)
    .map((listener) => `${listener.service} ${listener.node}:${listener.port}`)
    .sort();
