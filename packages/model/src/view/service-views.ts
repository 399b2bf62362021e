// Views that remember: of a fleet that changed only the Services it changed for are looked at again. The full computation is the
// first step of a new memory; a law compares the two over random histories.

import { isJsonEqual } from '../json-equal.ts';
import { diffLists } from '../list-diff.ts';
import { isInForce, isTargetOf, type Suspension, suspensionFor } from '../suspension.ts';
import type { NodeEntry, ServiceEntry } from '../table/entry.ts';
import type { FleetState } from './fleet-state.ts';
import { ListenerReportIndex } from './listener-reports.ts';
import { readinessOf } from './readiness.ts';
import { buildServiceView, type ServiceView, type ServiceViewContext } from './service-view.ts';
import { TableIndex } from './table-index.ts';

/** A view of each Service of the table, sorted by namespace and name. */
export function serviceViewsFor(fleet: FleetState): ServiceView[] {
  return [...new ServiceViewTracker().update(fleet)];
}

/** The view of one Service by its entry. */
export function serviceViewFor(entry: ServiceEntry, fleet: FleetState): ServiceView {
  const table = new TableIndex();
  const reports = new ListenerReportIndex();
  table.update(fleet.table);
  reports.update(fleet.heartbeats);
  const part = table.partOf(entry.uid) ?? {
    listeners: [],
    endpoints: { ready: 0, total: 0 },
    readiness: readinessOf(entry, []),
  };
  const suspension = suspensionFor(fleet.suspensions, entry, fleet.now);
  const previousAddresses = fleet.previousAddresses.get(entry.uid) ?? [];
  return buildServiceView({ ...part, entry, suspension, previousAddresses }, contextOf(fleet, table, reports));
}

export class ServiceViewTracker {
  readonly #table = new TableIndex();
  readonly #reports = new ListenerReportIndex();
  /** By Service UID. */
  readonly #views = new Map<string, ServiceView>();
  /** UIDs of those that are published at nodes which they no longer hold, while they move. */
  readonly #moving = new Set<string>();
  #suspensions: readonly Suspension[] = [];
  #isReachable = false;
  #isSettling = false;
  #sorted: readonly ServiceView[] = [];

  /**
   * A view of each Service of the table, sorted by namespace and name; views that say the same stay the same objects, and so does the
   * list. The addresses of before are those of the last view; `fleet.previous` is asked only for Services that had none.
   */
  update(fleet: FleetState): readonly ServiceView[] {
    const changed = new Map<ServiceView, ServiceView | undefined>();
    const come: ServiceView[] = [];
    for (const uid of this.#dirtyServices(fleet)) {
      const before = this.#views.get(uid);
      const view = this.#viewOf(uid, before, fleet);
      this.#noteMove(uid, view);
      if (view === before) continue;
      if (view === undefined) this.#views.delete(uid);
      else this.#views.set(uid, view);
      const isInPlace = before !== undefined && view !== undefined && byName(before, view) === 0;
      if (before !== undefined) changed.set(before, isInPlace ? view : undefined);
      if (!isInPlace && view !== undefined) come.push(view);
    }
    if (changed.size > 0 || come.length > 0) this.#sorted = mergeSorted(this.#sorted, changed, come);
    return this.#sorted;
  }

  #dirtyServices(fleet: FleetState): Iterable<string> {
    const { services, nodes, listenerNodes } = this.#table.update(fleet.table);
    const reported = this.#reports.update(fleet.heartbeats);
    const cutoffs = this.#updateSuspensions(fleet);
    const isSettling = fleet.settling ?? false;
    const isFlag = fleet.reachable !== this.#isReachable || isSettling !== this.#isSettling;
    this.#isReachable = fleet.reachable;
    this.#isSettling = isSettling;
    if (isFlag) return new Set([...this.#table.uids(), ...this.#views.keys()]);
    const dirty = new Set([...services, ...reported, ...this.#movingAwayFrom(listenerNodes)]);
    if (nodes.length === 0 && cutoffs.length === 0) return dirty;
    for (const uid of this.#table.uids()) {
      const entry = this.#table.entryOf(uid);
      if (entry === undefined) continue;
      const isCutOff = cutoffs.some((cutoff) => isTargetOf(cutoff.target, entry));
      if (isCutOff || this.#isAt(entry, nodes)) dirty.add(uid);
    }
    return dirty;
  }

  /** Another may have come to hold their ports at one of these nodes. */
  #movingAwayFrom(places: ReadonlySet<string>): string[] {
    const isAt = ({ addresses }: ServiceView, name: string): boolean =>
      this.#table.nodes.get(name)?.publishedAddresses.some((address) => addresses.includes(address)) === true;
    return [...this.#moving].filter((uid) => {
      const view = this.#views.get(uid);
      return view !== undefined && [...places].some((name) => isAt(view, name));
    });
  }

  #noteMove(uid: string, view: ServiceView | undefined): void {
    const own = this.#table.entryOf(uid)?.nodes ?? [];
    const held = own.flatMap((name) => this.#table.nodes.get(name)?.publishedAddresses ?? []);
    if (view?.addresses.some((address) => !held.includes(address)) === true) this.#moving.add(uid);
    else this.#moving.delete(uid);
  }

  /** Returns those that are in force now and were not, or were and are not. */
  #updateSuspensions({ suspensions, now }: FleetState): readonly Suspension[] {
    const before = this.#suspensions;
    const inForce = suspensions.filter((cutoff) => isInForce(cutoff, now));
    if (isJsonEqual(before, inForce)) return [];
    this.#suspensions = inForce;
    const { removed, added } = diffLists(before, inForce);
    return [...removed, ...added];
  }

  /** It holds ports there, or is still published there while it moves. */
  #isAt({ uid, nodes: own }: ServiceEntry, nodes: readonly NodeEntry[]): boolean {
    const published = this.#views.get(uid)?.addresses ?? [];
    return nodes.some(
      ({ name, publishedAddresses }) =>
        own.includes(name) || publishedAddresses.some((address) => published.includes(address)),
    );
  }

  #viewOf(uid: string, before: ServiceView | undefined, fleet: FleetState): ServiceView | undefined {
    const part = this.#table.partOf(uid);
    if (part === undefined) return undefined;
    const addresses = before?.addresses ?? fleet.previousAddresses.get(uid) ?? [];
    const suspension = suspensionFor(this.#suspensions, part.entry, fleet.now);
    const world = contextOf(fleet, this.#table, this.#reports);
    const view = buildServiceView({ ...part, suspension, previousAddresses: addresses }, world);
    return isJsonEqual(before, view) ? before : view;
  }
}

function contextOf(fleet: FleetState, table: TableIndex, reports: ListenerReportIndex): ServiceViewContext {
  return { ...fleet, nodes: table.nodes, isAllocated: (place) => table.isAllocated(place), reports };
}

/** A list in order, with some of it put in place of others, or gone (undefined), and some new. */
function mergeSorted(
  sorted: readonly ServiceView[],
  changed: ReadonlyMap<ServiceView, ServiceView | undefined>,
  come: readonly ServiceView[],
): readonly ServiceView[] {
  const views: ServiceView[] = [];
  const news = [...come].sort(byName);
  let next = 0;
  for (const before of sorted) {
    for (let view = news[next]; view !== undefined && byName(view, before) < 0; view = news[next]) {
      views.push(view);
      next += 1;
    }
    const view = changed.has(before) ? changed.get(before) : before;
    if (view !== undefined) views.push(view);
  }
  return [...views, ...news.slice(next)];
}

function byName(a: ServiceView, b: ServiceView): number {
  return compare(a.namespace, b.namespace) || compare(a.name, b.name) || compare(a.uid, b.uid);
}

function compare(a: string, b: string): number {
  return a < b ? -1 : a > b ? 1 : 0;
}
