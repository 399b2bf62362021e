// Which Services must be changed in one step because of what is no entry of its own: a name that clients ask for on a shared port, and
// a place that goes from one who has it alone to those who share it, or back.
import { entryIdOf } from '../table/diff.ts';
import { type Entry, type ListenerEntry, listenerId, serviceId } from '../table/entry.ts';
import { isJsonEqual } from '../table/same.ts';
import type { Change } from '../table/table.ts';

/** Several Services with the same `what` belong together. */
export type ResourceUse = readonly [what: string, service: string];

/** What a node knows before the changes. */
export interface ResourceIndex {
  readonly node: string;
  readonly entries: ReadonlyMap<string, Entry>;
  listenersOf(service: string): Iterable<ListenerEntry>;
}

/**
 * Bonds between those who give or take the same host, or a host and the wildcard that is for it, too: one after the other, a client
 * would meet nobody in between, or one who has the name neither before nor after. Costs what changes, and little where nothing is shared.
 */
export function sharedResourceUses(changes: readonly Change[], index: ResourceIndex): ResourceUse[] {
  /** Services that share a place, or did, by the id that the entry of one who has it alone would have. */
  const places = new Map<string, Set<string>>();
  const services = new Set<string>();
  for (const change of changes) {
    const before = index.entries.get(entryIdOf(change));
    const after = change.kind === 'put' ? change.entry : undefined;
    if (hostsOf(before) !== hostsOf(after) && !isJsonEqual(hostsOf(before), hostsOf(after))) addService(before, after);
    addShare(before);
    addShare(after);
  }
  // Most have neither: of them nothing more is asked.
  if (services.size === 0) return [];
  const last = new Map(changes.map((change) => [entryIdOf(change), change]));
  const ofPlaces = [...places].flatMap(([place, sharers]) => bindingUses(place, sharers, { last, index }));
  return [...ofPlaces, ...hostNameUses(services, { last, putListeners: putListenersByService(last, index), index })];

  function addService(...sides: readonly (Entry | undefined)[]): void {
    for (const entry of sides) if (entry?.kind === 'service') services.add(entry.uid);
  }

  function addShare(entry: Entry | undefined): void {
    if (entry?.kind !== 'listener' || entry.shared !== true || entry.node !== index.node) return;
    const place = listenerId(entry);
    places.set(place, (places.get(place) ?? new Set()).add(entry.service));
    services.add(entry.service);
  }
}

/** When one who has it alone gives or takes it; from one such to another it is one entry, and the holders say so. */
function bindingUses(
  place: string,
  sharers: ReadonlySet<string>,
  { last, index }: Pick<ChangedEntries, 'last' | 'index'>,
): ResourceUse[] {
  const change = last.get(place);
  if (change === undefined) return [];
  const several = new Set(sharers);
  for (const entry of [index.entries.get(place), change.kind === 'put' ? change.entry : undefined])
    if (entry?.kind === 'listener') several.add(entry.service);
  return several.size > 1 ? [...several].map((uid): ResourceUse => [`place/${place}`, uid]) : [];
}

interface ChangedEntries {
  readonly last: ReadonlyMap<string, Change>;
  /** By Service, those that are put. */
  readonly putListeners: ReadonlyMap<string, readonly ListenerEntry[]>;
  readonly index: ResourceIndex;
}

function putListenersByService(
  last: ReadonlyMap<string, Change>,
  { node }: ResourceIndex,
): ReadonlyMap<string, ListenerEntry[]> {
  const listeners = [...last.values()].flatMap((change) =>
    change.kind === 'put' && change.entry.kind === 'listener' && change.entry.node === node ? [change.entry] : [],
  );
  return Map.groupBy(listeners, ({ service }) => service);
}

function hostNameUses(services: ReadonlySet<string>, changed: ChangedEntries): ResourceUse[] {
  const moving = [...services].flatMap((uid) => [...movedHostNames(uid, changed)].map((name) => ({ uid, name })));
  const wildcards = new Set(moving.filter(({ name }) => name.includes('/*.')).map(({ name }) => name));
  return moving.flatMap(({ uid, name }): ResourceUse[] => {
    const above = name.replace(/\/[^.]+/, '/*');
    return wildcards.has(above) && above !== name
      ? [
          [`name/${name}`, uid],
          [`name/${above}`, uid],
        ]
      : [[`name/${name}`, uid]];
  });
}

/** `port/host` of each that the Service gives or takes on this node. */
function movedHostNames(uid: string, { last, putListeners, index }: ChangedEntries): Set<string> {
  const service = last.get(serviceId(uid));
  const entryBefore = index.entries.get(serviceId(uid));
  const entryAfter = service === undefined ? entryBefore : service.kind === 'put' ? service.entry : undefined;
  const listeners = [...index.listenersOf(uid)];
  const stay = listeners.filter(({ id }) => !last.has(id));
  const before = hostNamesOf(listeners, hostsOf(entryBefore));
  const after = hostNamesOf([...stay, ...(putListeners.get(uid) ?? [])], hostsOf(entryAfter));
  return new Set([...before, ...after].filter((name) => before.has(name) !== after.has(name)));
}

function hostNamesOf(listeners: readonly ListenerEntry[], hosts: readonly string[]): Set<string> {
  const ports = new Set(listeners.filter(({ shared }) => shared === true).map(({ port }) => port));
  return new Set([...ports].flatMap((port) => hosts.map((host) => `${port}/${host}`)));
}

function hostsOf(entry: Entry | undefined): readonly string[] {
  return entry?.kind === 'service' ? (entry.settings?.hosts ?? NO_HOSTS) : NO_HOSTS;
}

const NO_HOSTS: readonly string[] = [];
