// Translation that remembers: of a new snapshot only what another object touches is decided again. The full translation is
// the first step of a new translator; a law compares the two over random histories.

import { secretPath } from '../certificate-validity.ts';
import type { FleetSettings } from '../fleet-settings.ts';
import { diffLists, type ListDiff } from '../list-diff.ts';
import type { Problem } from '../problem.ts';
import { serviceSettingsFor } from '../settings/parse-settings.ts';
import type { ServiceObject, Snapshot } from '../snapshot.ts';
import type { RoutingTable } from '../table/table.ts';
import { type Allocations, servedPortNames } from './allocate/allocations.ts';
import { Allocator } from './allocate/allocator.ts';
import { EndpointTrustIndex } from './endpoint-trust.ts';
import { SliceIndex } from './endpoints.ts';
import { type Nodes, nodesFor } from './nodes.ts';
import { ProblemIndex } from './problem-index.ts';
import { fleetProblems, serviceProblems, suspensionProblems } from './problems.ts';
import { SecretIndex } from './secret-index.ts';
import { serviceEntriesFor, translateService } from './service-entries.ts';
import { allocationOf, type ServiceRecord, ServiceRegistry } from './service-registry.ts';
import { type EntryReplacement, TableBuilder, TenantEntryTracker } from './table-builder.ts';
import { isSameMembership, TenancyTracker } from './tenancy.ts';

export interface TranslatorOutput {
  readonly table: RoutingTable;
  /** By subject and code. */
  readonly problems: readonly Problem[];
}

/** Where problems come from beside the Services. */
type ProblemSource = 'source' | 'nodes' | 'fleet' | 'suspensions';

export class Translator {
  readonly #services: ServiceRegistry;
  readonly #allocator: Allocator;
  readonly #tenancy = new TenancyTracker();
  readonly #tenants = new TenantEntryTracker();
  readonly #slices = new SliceIndex();
  readonly #secrets = new SecretIndex();
  readonly #table = new TableBuilder();
  readonly #problems = new ProblemIndex<ServiceRecord | ProblemSource>();
  readonly #trust: EndpointTrustIndex;
  readonly #settings: FleetSettings;
  /** By tenant, what of its limits is exceeded. */
  readonly #excess = new Map<string, string>();
  #previous: Snapshot | undefined;
  #nodes: Nodes = { entries: [], byName: new Map(), unschedulable: new Set(), lost: new Set(), problems: [] };

  /** `held`: what the last table granted (`heldFor`). Who has a port keeps it. */
  constructor(settings: FleetSettings, held: Allocations) {
    this.#settings = settings;
    this.#trust = new EndpointTrustIndex(settings.trust);
    this.#services = new ServiceRegistry(held);
    this.#allocator = new Allocator(this.#services, held);
  }

  /**
   * The table of a snapshot. Objects that are the same as in the one before are taken for unchanged; the order of the snapshot does
   * not matter. Throws when its settings are others: they need a translator of their own.
   */
  translate(snapshot: Snapshot): TranslatorOutput {
    const before = this.#previous;
    if (snapshot.settings !== this.#settings) throw new Error('these settings need a translator of their own');
    this.#previous = snapshot;
    const isNodes = before?.nodes !== snapshot.nodes || before.unreachableNodes !== snapshot.unreachableNodes;
    const nodes = isNodes ? this.#setNodes(snapshot) : [];
    const changes = diffLists(before?.services ?? [], snapshot.services);
    const { gone, changed } = this.#services.update(changes, snapshot.settings);
    const isTenancy = this.#tenancy.update(snapshot, changes);
    const stale = this.#staleEndpoints(before, snapshot, changes);
    const dirty = new Set(isNodes ? this.#services.all() : changed);
    if (isTenancy) for (const record of this.#withChangedTenant()) dirty.add(record);
    for (const record of this.#withChangedSecrets(snapshot)) dirty.add(record);
    for (const record of gone) dirty.delete(record);

    const world = {
      fleet: snapshot.settings,
      nodes: this.#nodes,
      tenancy: this.#tenancy.tenancy,
      secrets: this.#secrets,
    };
    const { decided, tenants } = this.#allocator.allocate(dirty, gone, world);
    const touched = new Set([...tenants, ...this.#setTenants(decided), ...gone.flatMap(({ tenant }) => tenant ?? [])]);
    const others = this.#updateExcess(isTenancy ? 'all' : touched);

    const replacements = [
      ...nodes,
      ...gone.map(({ entries }) => ({ before: entries, after: [] })),
      ...this.#updateEntries(new Set([...decided, ...stale, ...others])),
    ];
    for (const record of gone) this.#problems.set(record, []);
    this.#setProblems(snapshot);
    const about = { tenancy: this.#tenancy.tenancy, quota: this.#allocator.quota, services: this.#services };
    this.#table.replace([
      ...replacements,
      ...this.#tenants.update(isTenancy ? 'all' : touched, about),
      ...this.#problems.updateEntries(),
    ]);
    return { table: this.#table.table, problems: this.#problems.all };
  }

  #setNodes(snapshot: Snapshot): EntryReplacement[] {
    const before = this.#nodes.entries;
    this.#nodes = nodesFor(snapshot);
    this.#trust.setNodes(snapshot.nodes, this.#nodes.entries);
    return [{ before, after: this.#nodes.entries }];
  }

  /** Services whose endpoints may be others now. */
  #staleEndpoints(
    before: Snapshot | undefined,
    { slices, pods, serviceCidrs }: Snapshot,
    services: ListDiff<ServiceObject>,
  ): Set<ServiceRecord> {
    const isRange = before?.serviceCidrs !== serviceCidrs;
    if (isRange) this.#trust.setServiceRanges(serviceCidrs ?? []);
    const stale = new Set(isRange ? this.#services.all() : []);
    const addresses = this.#trust.setServices(services);
    for (const record of before === undefined ? [] : this.#usingAddresses(addresses)) stale.add(record);
    for (const path of this.#slices.update(diffLists(before?.slices ?? [], slices))) {
      const record = this.#services.byPath(path);
      if (record !== undefined) stale.add(record);
    }
    for (const namespace of this.#trust.setPods(diffLists(before?.pods ?? [], pods))) {
      for (const record of this.#services.ofNamespace(namespace)) stale.add(record);
    }
    return stale;
  }

  /** Those that may have endpoints at one of these addresses, which are of no pod. Mostly there are none: ranges are known. */
  *#usingAddresses(addresses: readonly string[]): Iterable<ServiceRecord> {
    if (addresses.length === 0) return;
    const { tenancy } = this.#tenancy;
    for (const namespace of this.#services.namespaces()) {
      const isAllowed = (address: string): boolean => this.#trust.isAllowed(namespace, address, tenancy);
      if (addresses.some(isAllowed)) yield* this.#services.ofNamespace(namespace);
    }
  }

  /** Services that name a Secret which says something else now. */
  *#withChangedSecrets(snapshot: Snapshot): Iterable<ServiceRecord> {
    const paths = this.#secrets.update(snapshot);
    if (paths === 'all') {
      for (const record of this.#services.all()) if (secretsNamedBy(record).length > 0) yield record;
      return;
    }
    for (const namespace of new Set([...paths].map(namespaceOf))) {
      const isNamed = (name: string): boolean => paths.has(secretPath(namespace, name));
      for (const record of this.#services.ofNamespace(namespace))
        if (secretsNamedBy(record).some(isNamed)) yield record;
    }
  }

  /** Whose tenant is another, or says something else; and who was told by whom its port is taken. */
  *#withChangedTenant(): Iterable<ServiceRecord> {
    const others: ServiceRecord[] = [];
    for (const record of this.#services.all()) {
      const membership = this.#tenancy.tenancy.membershipOf(record.service.namespace);
      if (!isSameMembership(record.membership, membership)) others.push(record);
      record.membership = membership;
    }
    yield* others;
    yield* this.#allocator.waitersFor(others);
  }

  /** Returns the tenants that have other Services now. */
  #setTenants(decided: ReadonlySet<ServiceRecord>): Set<string> {
    const touched = new Set<string>();
    for (const record of decided) {
      const { decision, tenant } = record;
      record.membership = this.#tenancy.tenancy.membershipOf(record.service.namespace);
      record.allocation = allocationOf(record);
      if (decision === undefined || decision.tenant === tenant) continue;
      for (const each of [tenant, decision.tenant]) if (each !== null) touched.add(each);
      this.#services.setTenant(record, decision.tenant);
    }
    return touched;
  }

  /** Returns the Services of tenants that are over their limits now, or no longer. */
  #updateExcess(touched: ReadonlySet<string> | 'all'): Set<ServiceRecord> {
    const { tenants } = this.#tenancy.tenancy;
    const others = new Set<ServiceRecord>();
    for (const name of touched === 'all' ? new Set([...tenants.keys(), ...this.#excess.keys()]) : touched) {
      const tenant = tenants.get(name);
      const message = tenant && this.#allocator.quota.excessOf(tenant);
      if (message === this.#excess.get(name)) continue;
      if (message === undefined) this.#excess.delete(name);
      else this.#excess.set(name, message);
      for (const record of this.#services.ofTenant(name)) others.add(record);
    }
    return others;
  }

  #updateEntries(records: ReadonlySet<ServiceRecord>): EntryReplacement[] {
    const checkAddress = this.#trust.checkFor(this.#tenancy.tenancy);
    const hasNodes = this.#nodes.entries.length > 0;
    const replacements: EntryReplacement[] = [];
    for (const record of records) {
      if (record.decision === undefined) continue;
      const excess = this.#excess.get(record.tenant ?? '');
      const outcome = translateService(record.decision, {
        slices: this.#slices,
        checkAddress,
        excess,
        before: record.servedPortNames,
      });
      record.servedPortNames = outcome.settings === null ? new Map() : servedPortNames(outcome.ports);
      const after = serviceEntriesFor(outcome);
      replacements.push({ before: record.entries, after });
      record.entries = after;
      this.#problems.set(record, serviceProblems(outcome, hasNodes));
    }
    return replacements;
  }

  #setProblems(snapshot: Snapshot): void {
    const world = {
      services: this.#services,
      hasTenant: (tenant: string) => this.#tenancy.tenancy.tenants.has(tenant),
      hasNamespace: (name: string) => this.#tenancy.hasNamespace(name),
      hasNodes: this.#nodes.entries.length > 0,
    };
    this.#problems.set('source', snapshot.problems);
    this.#problems.set('nodes', this.#nodes.problems);
    this.#problems.set('fleet', fleetProblems(snapshot, world));
    this.#problems.set('suspensions', suspensionProblems(snapshot, world));
  }
}

/** By what it asks for, and by what it is served with. */
function secretsNamedBy({ service, allocation }: ServiceRecord): readonly string[] {
  const parsed = serviceSettingsFor(service);
  const asked = parsed.kind === 'settings' ? parsed.settings.tls : undefined;
  return [asked, allocation?.settings.tls].flatMap((tls) =>
    tls === undefined ? [] : [tls.secret, tls.clientCaSecret ?? tls.secret],
  );
}

function namespaceOf(path: string): string {
  return path.slice(0, path.indexOf('/'));
}
