// Translation that remembers: of a new snapshot only what another object touches is decided again. The full translation is
// the first step of a new translator; a law compares the two over random histories.
import type { Problem } from '../problem.ts';
import { settingsFor } from '../settings/settings-for.ts';
import type { FleetSettings, ServiceObject, Snapshot } from '../snapshot.ts';
import type { RoutingTable } from '../table/table.ts';
import { secretPath } from '../tls/validity.ts';
import { type ChangedIn, changedIn } from './changed-in.ts';
import { Decider } from './decider.ts';
import { type Held, servedPorts } from './held.ts';
import { type Nodes, nodesFor } from './nodes.ts';
import { entriesFor, outcomeFor } from './outcomes.ts';
import { ProblemBook } from './problem-book.ts';
import { fleetProblems, outcomeProblems, suspensionProblems } from './problems.ts';
import { SecretBook } from './secret-book.ts';
import { ServiceBook } from './service-book.ts';
import { grantedTo, type ServiceRecord } from './service-record.ts';
import { SliceIndex } from './slice-index.ts';
import { type Replacement, TableDraft } from './table-draft.ts';
import { isSameMembership, TenancyWatch } from './tenancy-watch.ts';
import { TenantEntries } from './tenant-entries.ts';
import { Trust } from './trust.ts';

export interface Decided {
  readonly table: RoutingTable;
  /** By subject and code. */
  readonly problems: readonly Problem[];
}

/** Where problems come from beside the Services. */
type Source = 'source' | 'nodes' | 'fleet' | 'suspensions';

export class Translator {
  readonly #services: ServiceBook;
  readonly #decider: Decider;
  readonly #tenancy = new TenancyWatch();
  readonly #tenants = new TenantEntries();
  readonly #slices = new SliceIndex();
  readonly #secrets = new SecretBook();
  readonly #draft = new TableDraft();
  readonly #problems = new ProblemBook<ServiceRecord | Source>();
  readonly #trust: Trust;
  readonly #settings: FleetSettings;
  /** By tenant, what of its limits is exceeded. */
  readonly #excess = new Map<string, string>();
  #before: Snapshot | undefined;
  #nodes: Nodes = { entries: [], byName: new Map(), cordoned: new Set(), lost: new Set(), problems: [] };

  /** `held`: what the last table granted (`heldFor`). Who has a port keeps it. */
  constructor(settings: FleetSettings, held: Held) {
    this.#settings = settings;
    this.#trust = new Trust(settings.trust);
    this.#services = new ServiceBook(held);
    this.#decider = new Decider(this.#services, held);
  }

  /**
   * The table of a snapshot. Objects that are the same as in the one before are taken for unchanged; the order of the snapshot does
   * not matter. Throws when its settings are others: they need a translator of their own.
   */
  next(snapshot: Snapshot): Decided {
    const before = this.#before;
    if (snapshot.settings !== this.#settings) throw new Error('these settings need a translator of their own');
    this.#before = snapshot;
    const isNodes = before?.nodes !== snapshot.nodes || before.absent !== snapshot.absent;
    const nodes = isNodes ? this.#setNodes(snapshot) : [];
    const changes = changedIn(before?.services ?? [], snapshot.services);
    const { gone, changed } = this.#services.update(changes, snapshot.settings);
    const isTenancy = this.#tenancy.update(snapshot, changes);
    const stale = this.#staleEndpoints(before, snapshot, changes);
    const dirty = new Set(isNodes ? this.#services.all() : changed);
    if (isTenancy) for (const record of this.#inOtherHands()) dirty.add(record);
    for (const record of this.#withOtherSecrets(snapshot)) dirty.add(record);
    for (const record of gone) dirty.delete(record);

    const world = {
      fleet: snapshot.settings,
      nodes: this.#nodes,
      tenancy: this.#tenancy.tenancy,
      secrets: this.#secrets,
    };
    const { decided, tenants } = this.#decider.decide(dirty, gone, world);
    const touched = new Set([...tenants, ...this.#setTenants(decided), ...gone.flatMap(({ tenant }) => tenant ?? [])]);
    const others = this.#renewExcess(isTenancy ? 'all' : touched);

    const replacements = [
      ...nodes,
      ...gone.map(({ entries }) => ({ before: entries, after: [] })),
      ...this.#renew(new Set([...decided, ...stale, ...others])),
    ];
    for (const record of gone) this.#problems.set(record, []);
    this.#setProblems(snapshot);
    const about = { tenancy: this.#tenancy.tenancy, quota: this.#decider.quota, services: this.#services };
    this.#draft.replace([
      ...replacements,
      ...this.#tenants.renew(isTenancy ? 'all' : touched, about),
      ...this.#problems.renew(),
    ]);
    return { table: this.#draft.table, problems: this.#problems.all };
  }

  #setNodes(snapshot: Snapshot): Replacement[] {
    const before = this.#nodes.entries;
    this.#nodes = nodesFor(snapshot);
    this.#trust.setNodes(snapshot.nodes, this.#nodes.entries);
    return [{ before, after: this.#nodes.entries }];
  }

  /** Services whose endpoints may be others now. */
  #staleEndpoints(
    before: Snapshot | undefined,
    { slices, pods, serviceCidrs }: Snapshot,
    services: ChangedIn<ServiceObject>,
  ): Set<ServiceRecord> {
    const isRange = before?.serviceCidrs !== serviceCidrs;
    if (isRange) this.#trust.setServiceRanges(serviceCidrs ?? []);
    const stale = new Set(isRange ? this.#services.all() : []);
    const addresses = this.#trust.setServices(services);
    for (const record of before === undefined ? [] : this.#allowedAny(addresses)) stale.add(record);
    for (const path of this.#slices.update(changedIn(before?.slices ?? [], slices))) {
      const record = this.#services.byPath(path);
      if (record !== undefined) stale.add(record);
    }
    for (const namespace of this.#trust.setPods(changedIn(before?.pods ?? [], pods))) {
      for (const record of this.#services.inNamespace(namespace)) stale.add(record);
    }
    return stale;
  }

  /** Those that may have endpoints at one of these addresses, which are of no pod. Mostly there are none: ranges are known. */
  *#allowedAny(addresses: readonly string[]): Iterable<ServiceRecord> {
    if (addresses.length === 0) return;
    const { tenancy } = this.#tenancy;
    for (const namespace of this.#services.namespaces()) {
      const isAllowed = (address: string): boolean => this.#trust.isAllowed(namespace, address, tenancy);
      if (addresses.some(isAllowed)) yield* this.#services.inNamespace(namespace);
    }
  }

  /** Services that name a Secret which says something else now. */
  *#withOtherSecrets(snapshot: Snapshot): Iterable<ServiceRecord> {
    const paths = this.#secrets.update(snapshot);
    if (paths === 'all') {
      for (const record of this.#services.all()) if (secretsNamedBy(record).length > 0) yield record;
      return;
    }
    for (const namespace of new Set([...paths].map(namespaceOf))) {
      const isNamed = (name: string): boolean => paths.has(secretPath(namespace, name));
      for (const record of this.#services.inNamespace(namespace))
        if (secretsNamedBy(record).some(isNamed)) yield record;
    }
  }

  /** Whose tenant is another, or says something else; and who was told by whom its port is taken. */
  *#inOtherHands(): Iterable<ServiceRecord> {
    const others: ServiceRecord[] = [];
    for (const record of this.#services.all()) {
      const membership = this.#tenancy.tenancy.membershipOf(record.service.namespace);
      if (!isSameMembership(record.membership, membership)) others.push(record);
      record.membership = membership;
    }
    yield* others;
    yield* this.#decider.neighboursOf(others);
  }

  /** Returns the tenants that have other Services now. */
  #setTenants(decided: ReadonlySet<ServiceRecord>): Set<string> {
    const touched = new Set<string>();
    for (const record of decided) {
      const { decision, tenant } = record;
      record.membership = this.#tenancy.tenancy.membershipOf(record.service.namespace);
      record.held = grantedTo(record);
      if (decision === undefined || decision.tenant === tenant) continue;
      for (const each of [tenant, decision.tenant]) if (each !== null) touched.add(each);
      this.#services.setTenant(record, decision.tenant);
    }
    return touched;
  }

  /** Returns the Services of tenants that are over their limits now, or no longer. */
  #renewExcess(touched: ReadonlySet<string> | 'all'): Set<ServiceRecord> {
    const { tenants } = this.#tenancy.tenancy;
    const others = new Set<ServiceRecord>();
    for (const name of touched === 'all' ? new Set([...tenants.keys(), ...this.#excess.keys()]) : touched) {
      const tenant = tenants.get(name);
      const message = tenant && this.#decider.quota.excessOf(tenant);
      if (message === this.#excess.get(name)) continue;
      if (message === undefined) this.#excess.delete(name);
      else this.#excess.set(name, message);
      for (const record of this.#services.ofTenant(name)) others.add(record);
    }
    return others;
  }

  #renew(records: ReadonlySet<ServiceRecord>): Replacement[] {
    const mayUse = this.#trust.checkFor(this.#tenancy.tenancy);
    const hasNodes = this.#nodes.entries.length > 0;
    const replacements: Replacement[] = [];
    for (const record of records) {
      if (record.decision === undefined) continue;
      const excess = this.#excess.get(record.tenant ?? '');
      const outcome = outcomeFor(record.decision, { slices: this.#slices, mayUse, excess, before: record.ports });
      record.ports = outcome.settings === null ? new Map() : servedPorts(outcome.ports);
      const after = entriesFor(outcome);
      replacements.push({ before: record.entries, after });
      record.entries = after;
      this.#problems.set(record, outcomeProblems(outcome, hasNodes));
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
function secretsNamedBy({ service, held }: ServiceRecord): readonly string[] {
  const parsed = settingsFor(service);
  const asked = parsed.kind === 'settings' ? parsed.settings.tls : undefined;
  return [asked, held?.settings.tls].flatMap((tls) =>
    tls === undefined ? [] : [tls.secret, tls.clientCaSecret ?? tls.secret],
  );
}

function namespaceOf(path: string): string {
  return path.slice(0, path.indexOf('/'));
}
