// Computes views incrementally: after a change of the fleet, only the views of affected Services are computed again. A property test
// compares these views with the views that a new tracker computes.

import { compareText, diffLists, isJsonEqual, mergeSorted } from '../compare.ts';
import type { Heartbeat } from '../heartbeat.ts';
import { isInForce, isTargetOf, type Suspension, suspensionFor } from '../suspension.ts';
import type { NodeEntry, ServiceEntry } from '../table/entry.ts';
import type { FleetState } from './fleet-state.ts';
import { ListenerReportIndex } from './listener-reports.ts';
import { readinessOf } from './readiness.ts';
import { buildServiceView, type ServiceView, type ServiceViewContext } from './service-view.ts';
import { TableIndex } from './table-index.ts';

/** Returns the views of all Services of the table, sorted by namespace and name. */
export function serviceViewsFor(fleet: FleetState): ServiceView[] {
  return [...new ServiceViewTracker().update(fleet)];
}

/** Returns the view of one Service of the table. */
export function serviceViewFor(entry: ServiceEntry, fleet: FleetState): ServiceView {
  const table = new TableIndex();
  const reports = new ListenerReportIndex();
  table.update(fleet.table);
  reports.update(reportsIn(fleet));
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
  /** The last views, by Service UID. */
  readonly #views = new Map<string, ServiceView>();
  /** UIDs of the Services that move: such a Service is still published at an address of a node on which it has no ports any more. */
  readonly #moving = new Set<string>();
  #suspensions: readonly Suspension[] = [];
  #isReachable = false;
  #isUnpublished = false;
  #isSettling = false;
  #silentSince: ReadonlyMap<string, number> = NO_SILENT_NODES;
  #sorted: readonly ServiceView[] = [];

  /**
   * Returns the views of all Services of the table, sorted by namespace and name. Returns the same object for an unchanged view, and the
   * same list if no view changed. The previous addresses of a Service come from its last view, or from `fleet.previousAddresses` if the
   * Service has no last view.
   */
  update(fleet: FleetState): readonly ServiceView[] {
    const changed = new Map<ServiceView, ServiceView | undefined>();
    const added: ServiceView[] = [];
    for (const uid of this.#dirtyServices(fleet)) {
      const before = this.#views.get(uid);
      const view = this.#viewOf(uid, before, fleet);
      this.#updateMoving(uid, view);
      if (view === before) continue;
      if (view === undefined) this.#views.delete(uid);
      else this.#views.set(uid, view);
      const isInPlace = before !== undefined && view !== undefined && byName(before, view) === 0;
      if (before !== undefined) changed.set(before, isInPlace ? view : undefined);
      if (!isInPlace && view !== undefined) added.push(view);
    }
    if (changed.size > 0) {
      // Replaces a changed view at the same position if its sort key stays equal; otherwise removes the old view.
      this.#sorted = this.#sorted.flatMap((view) => (changed.has(view) ? (changed.get(view) ?? []) : view));
    }
    this.#sorted = mergeSorted(this.#sorted, added, byName);
    return this.#sorted;
  }

  #dirtyServices(fleet: FleetState): Iterable<string> {
    const { services, nodes, listenerNodes } = this.#table.update(fleet.table);
    const reported = this.#reports.update(reportsIn(fleet));
    const changedSuspensions = this.#updateSuspensions(fleet);
    const changedSilence = this.#updateSilence(fleet);
    const isSettling = fleet.settling ?? false;
    const isUnpublished = fleet.unpublished ?? false;
    const isEveryServiceDirty =
      fleet.reachable !== this.#isReachable || isUnpublished !== this.#isUnpublished || isSettling !== this.#isSettling;
    this.#isReachable = fleet.reachable;
    this.#isUnpublished = isUnpublished;
    this.#isSettling = isSettling;
    if (isEveryServiceDirty) return new Set([...this.#table.uids(), ...this.#views.keys()]);
    const dirty = new Set([...services, ...reported, ...this.#movingAwayFrom(listenerNodes)]);
    if (nodes.length === 0 && changedSuspensions.length === 0 && changedSilence.size === 0) return dirty;
    for (const uid of this.#table.uids()) {
      const entry = this.#table.entryOf(uid);
      if (entry === undefined) continue;
      const isTargeted = changedSuspensions.some(({ target }) => isTargetOf(target, entry));
      const isSilenceChanged = changedSilence.size > 0 && entry.nodes.some((name) => changedSilence.has(name));
      if (isTargeted || isSilenceChanged || this.#isAt(entry, nodes)) dirty.add(uid);
    }
    return dirty;
  }

  /**
   * Returns the moving Services that are still published at one of these nodes. Another Service may have got the ports of a moving Service
   * on such a node.
   */
  #movingAwayFrom(nodes: ReadonlySet<string>): string[] {
    const isAt = ({ addresses }: ServiceView, name: string): boolean =>
      this.#table.nodes.get(name)?.publishedAddresses.some((address) => addresses.includes(address)) === true;
    return [...this.#moving].filter((uid) => {
      const view = this.#views.get(uid);
      return view !== undefined && [...nodes].some((name) => isAt(view, name));
    });
  }

  #updateMoving(uid: string, view: ServiceView | undefined): void {
    const nodes = this.#table.entryOf(uid)?.nodes ?? [];
    const own = nodes.flatMap((name) => this.#table.nodes.get(name)?.publishedAddresses ?? []);
    if (view?.addresses.some((address) => !own.includes(address)) === true) this.#moving.add(uid);
    else this.#moving.delete(uid);
  }

  /** Returns the suspensions that came into force or expired since the last call. */
  #updateSuspensions({ suspensions, now }: FleetState): readonly Suspension[] {
    const before = this.#suspensions;
    const inForce = suspensions.filter((suspension) => isInForce(suspension, now));
    if (isJsonEqual(before, inForce)) return [];
    this.#suspensions = inForce;
    const { removed, added } = diffLists(before, inForce);
    return [...removed, ...added];
  }

  /** Returns the nodes that have become silent or alive since the last call. */
  #updateSilence({ silentSince = NO_SILENT_NODES }: FleetState): ReadonlySet<string> {
    const before = this.#silentSince;
    if (before === silentSince) return NO_NODES;
    this.#silentSince = silentSince;
    const names = [...before.keys(), ...silentSince.keys()];
    return new Set(names.filter((name) => before.get(name) !== silentSince.get(name)));
  }

  /** Whether a Service has ports at one of the nodes, or is still published there while it moves. */
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
    const context = contextOf(fleet, this.#table, this.#reports);
    const view = buildServiceView({ ...part, suspension, previousAddresses: addresses }, context);
    return isJsonEqual(before, view) ? before : view;
  }
}

const NO_SILENT_NODES: ReadonlyMap<string, number> = new Map();
const NO_NODES: ReadonlySet<string> = new Set();

function reportsIn({ heartbeats, lastErrors = [] }: FleetState): readonly Heartbeat[] {
  return lastErrors.length === 0 ? heartbeats : [...heartbeats, ...lastErrors];
}

function contextOf(fleet: FleetState, table: TableIndex, reports: ListenerReportIndex): ServiceViewContext {
  return { ...fleet, nodes: table.nodes, isAllocated: (binding) => table.isAllocated(binding), reports };
}

function byName(a: ServiceView, b: ServiceView): number {
  return compareText(a.namespace, b.namespace) || compareText(a.name, b.name) || compareText(a.uid, b.uid);
}
