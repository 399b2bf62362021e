// Translates a sequence of snapshots incrementally: a Service gets a new decision only if an object that it depends on has changed. The
// first translation of a new Translator is a full one. A property test compares incremental and full translations over random histories.

import { objectPath } from '../certificate-validity.ts';
import { diffLists, type ListDiff } from '../compare.ts';
import type { FleetSettings } from '../fleet-settings.ts';
import type { Problem } from '../problem.ts';
import { serviceSettingsFor } from '../settings/parse-settings.ts';
import { configMapsOf, keySecretsOf } from '../settings/service-settings.ts';
import type { ServiceObject, Snapshot } from '../snapshot.ts';
import type { RoutingTable } from '../table/table.ts';
import { type Allocations, portKey, portKeyOfResource, servedPortNames } from './allocate/allocations.ts';
import { Allocator, type ChangedResources } from './allocate/allocator.ts';
import { ConfigMapIndex } from './config-map-index.ts';
import { EndpointBudgets } from './endpoint-budgets.ts';
import { EndpointTrustIndex, RESERVED_ON_NODES } from './endpoint-trust.ts';
import { type EndpointCheck, SliceIndex } from './endpoints.ts';
import { type Nodes, nodesFor } from './nodes.ts';
import { fleetProblems, ProblemIndex, serviceProblems, suspensionProblems } from './problems.ts';
import { SecretIndex } from './secret-index.ts';
import { ServedEndpointIndex } from './served-endpoints.ts';
import { serviceEntriesFor, type TranslatedService, translateService, withEndpointsWithin } from './service-entries.ts';
import { allocationOf, type ServiceRecord, ServiceRegistry } from './service-registry.ts';
import { type EntryReplacement, TableBuilder, TenantEntryTracker } from './table-builder.ts';
import { isSameMembership, TenancyTracker } from './tenancy.ts';

export interface TranslatorOutput {
  readonly table: RoutingTable;
  /** Sorted by subject, code and message. */
  readonly problems: readonly Problem[];
}

/** Sources of problems other than the Services. */
type ProblemSource = 'source' | 'nodes' | 'fleet' | 'suspensions';

export class Translator {
  readonly #services: ServiceRegistry;
  readonly #allocator: Allocator;
  readonly #tenancy = new TenancyTracker();
  readonly #tenantEntries = new TenantEntryTracker();
  readonly #slices = new SliceIndex();
  readonly #configMaps = new ConfigMapIndex();
  readonly #secrets = new SecretIndex(this.#configMaps);
  readonly #table = new TableBuilder();
  readonly #problems = new ProblemIndex<ServiceRecord | ProblemSource>();
  readonly #trust: EndpointTrustIndex;
  readonly #servedEndpoints: ServedEndpointIndex;
  readonly #endpointBudgets = new EndpointBudgets();
  readonly #settings: FleetSettings;
  /** The message for each tenant that uses more than its limits, by tenant name. */
  readonly #excessByTenant = new Map<string, string>();
  #previous: Snapshot | undefined;
  #nodes: Nodes = { entries: [], byName: new Map(), unschedulable: new Set(), lost: new Set(), problems: [] };

  /** `allocations` is what the last table allocated (see `allocationsFor`). A Service keeps its allocated ports. */
  constructor(settings: FleetSettings, allocations: Allocations) {
    this.#settings = settings;
    this.#trust = new EndpointTrustIndex(settings);
    this.#services = new ServiceRegistry(allocations);
    this.#allocator = new Allocator(this.#services, allocations);
    this.#servedEndpoints = new ServedEndpointIndex(this.#services, (binding) => this.#allocator.ownersAt(binding));
  }

  /**
   * Returns the table and the problems of a snapshot. An object counts as unchanged if it is identical (===) to the object in the
   * previous snapshot. The order of the lists in the snapshot does not matter. Throws if the settings differ from those of the
   * constructor.
   */
  translate(snapshot: Snapshot): TranslatorOutput {
    const previous = this.#previous;
    if (snapshot.settings !== this.#settings)
      throw new Error('the fleet settings changed: expected a new Translator for new settings');
    this.#previous = snapshot;
    const haveNodesChanged =
      previous?.nodes !== snapshot.nodes || previous.unreachableNodes !== snapshot.unreachableNodes;
    const nodes = haveNodesChanged ? this.#setNodes(snapshot) : [];
    const serviceDiff = diffLists(previous?.services ?? [], snapshot.services);
    const { removed, changed } = this.#services.update(serviceDiff, snapshot.settings);
    const hasTenancyChanged = this.#tenancy.update(snapshot, serviceDiff);
    const withStaleEndpoints = this.#withStaleEndpoints(previous, snapshot, serviceDiff);
    const dirty = new Set(haveNodesChanged ? this.#services.all() : changed);
    if (hasTenancyChanged) for (const record of this.#withChangedTenant()) dirty.add(record);
    for (const record of this.#withChangedSecrets(snapshot)) dirty.add(record);
    for (const record of this.#naming(this.#configMaps.update(snapshot), configMapsNamedBy)) dirty.add(record);
    for (const record of removed) dirty.delete(record);

    const context = {
      fleet: snapshot.settings,
      nodes: this.#nodes,
      tenancy: this.#tenancy.tenancy,
      secrets: this.#secrets,
      configMaps: this.#configMaps,
    };
    const { decided, affected } = this.#allocator.allocate(dirty, removed, context);
    const tenantsOfRemoved = removed.flatMap(({ tenant }) => tenant ?? []);
    this.#setTenants(decided, affected);
    const changedTenants = new Set([...affected.tenants, ...tenantsOfRemoved]);
    for (const record of removed) this.#endpointBudgets.setDemand(record, null, 0);
    const withChangedExcess = this.#updateExcess(hasTenancyChanged ? 'all' : changedTenants);
    for (const record of removed) this.#servedEndpoints.setPorts(record, new Set());
    const atChangedPorts = this.#servedEndpoints.withEndpointsAt(
      new Set([...affected.resources].map(portKeyOfResource)),
    );

    const replacements = [
      ...nodes,
      ...removed.map(({ entries }) => ({ before: entries, after: [] })),
      ...this.#updateEntries(
        new Set([...decided, ...withStaleEndpoints, ...atChangedPorts, ...withChangedExcess]),
        hasTenancyChanged ? this.#tenancy.tenancy.tenants.keys() : changedTenants,
      ),
    ];
    for (const record of removed) this.#problems.set(record, []);
    this.#setProblems(snapshot);
    const { ruleRecords } = snapshot;
    if (previous?.ruleRecords !== ruleRecords)
      for (const name of [...(previous?.ruleRecords?.keys() ?? []), ...(ruleRecords?.keys() ?? [])])
        changedTenants.add(name);
    const tenantContext = {
      tenancy: this.#tenancy.tenancy,
      quota: this.#allocator.quota,
      services: this.#services,
      ruleRecords,
    };
    this.#table.replace([
      ...replacements,
      ...this.#tenantEntries.update(hasTenancyChanged ? 'all' : changedTenants, tenantContext),
      ...this.#problems.updateEntries(),
    ]);
    return { table: this.#table.table, problems: this.#problems.all };
  }

  #setNodes(snapshot: Snapshot): EntryReplacement[] {
    const before = this.#nodes.entries;
    this.#nodes = nodesFor(snapshot);
    this.#trust.setNodes(snapshot.nodes, this.#nodes.entries);
    this.#servedEndpoints.setNodes(this.#nodes.entries);
    return [{ before, after: this.#nodes.entries }];
  }

  /**
   * Returns the Services whose endpoints may have changed, because their slices changed or because the check of endpoint addresses may
   * have another result.
   */
  #withStaleEndpoints(
    previous: Snapshot | undefined,
    { slices, pods, serviceCidrs }: Snapshot,
    serviceDiff: ListDiff<ServiceObject>,
  ): Set<ServiceRecord> {
    const haveRangesChanged = previous?.serviceCidrs !== serviceCidrs;
    if (haveRangesChanged) this.#trust.setServiceRanges(serviceCidrs ?? []);
    const stale = new Set(haveRangesChanged ? this.#services.all() : []);
    const clusterIps = this.#trust.setServices(serviceDiff);
    const { namespaces, addresses } = this.#trust.setPods(diffLists(previous?.pods ?? [], pods));
    const changed = [...clusterIps, ...addresses];
    for (const record of previous === undefined ? [] : this.#allowedToUse(changed)) stale.add(record);
    for (const path of this.#slices.update(diffLists(previous?.slices ?? [], slices))) {
      const record = this.#services.byPath(path);
      if (record !== undefined) stale.add(record);
    }
    for (const namespace of namespaces) {
      for (const record of this.#services.ofNamespace(namespace)) stale.add(record);
    }
    return stale;
  }

  /**
   * Yields the Services whose policy allows endpoints at one of `addresses`: changed addresses of pods, and cluster IPs outside of the
   * known ranges.
   */
  *#allowedToUse(addresses: readonly string[]): Iterable<ServiceRecord> {
    if (addresses.length === 0) return;
    const { tenancy } = this.#tenancy;
    for (const namespace of this.#services.namespaces()) {
      const isAllowed = (address: string): boolean => this.#trust.isAllowed(namespace, address, tenancy);
      if (addresses.some(isAllowed)) yield* this.#services.ofNamespace(namespace);
    }
  }

  /** Yields the Services that name a Secret whose content, validity or access changed. */
  *#withChangedSecrets(snapshot: Snapshot): Iterable<ServiceRecord> {
    const paths = this.#secrets.update(snapshot);
    if (paths === 'all') {
      for (const record of this.#services.all()) if (secretsNamedBy(record).length > 0) yield record;
      return;
    }
    yield* this.#naming(paths, secretsNamedBy);
  }

  /** Yields the Services that name an object at one of the paths (`namespace/name`). */
  *#naming(paths: ReadonlySet<string>, namesIn: (record: ServiceRecord) => readonly string[]): Iterable<ServiceRecord> {
    for (const namespace of new Set([...paths].map(namespaceOf))) {
      const isNamed = (name: string): boolean => paths.has(objectPath(namespace, name));
      for (const record of this.#services.ofNamespace(namespace)) if (namesIn(record).some(isNamed)) yield record;
    }
  }

  /**
   * Yields the Services whose tenant changed, and the Services that wait for the ports of these Services. The message to a waiting
   * Service depends on whether the owner of the port has the same tenant.
   */
  *#withChangedTenant(): Iterable<ServiceRecord> {
    const changed: ServiceRecord[] = [];
    for (const record of this.#services.all()) {
      const membership = this.#tenancy.tenancy.membershipOf(record.service.namespace);
      if (!isSameMembership(record.membership, membership)) changed.push(record);
      record.membership = membership;
    }
    yield* changed;
    yield* this.#allocator.waitersForPortsOf(changed);
  }

  /**
   * Stores the membership, the allocation and the tenant of each decided Service in its record. Adds the tenants that gained or lost a
   * Service to `affected`, and the ports of this Service.
   */
  #setTenants(decided: ReadonlySet<ServiceRecord>, affected: ChangedResources): void {
    for (const record of decided) {
      const { decision, tenant } = record;
      record.membership = this.#tenancy.tenancy.membershipOf(record.service.namespace);
      record.allocation = allocationOf(record);
      if (decision === undefined || decision.tenant === tenant) continue;
      for (const name of [tenant, decision.tenant]) if (name !== null) affected.tenants.add(name);
      for (const listener of decision.listeners) affected.resources.add(portKey(listener));
      this.#services.setTenant(record, decision.tenant);
    }
  }

  /** Updates the messages of tenants that use more than their limits. Returns the Services of each tenant whose message changed. */
  #updateExcess(changedTenants: ReadonlySet<string> | 'all'): Set<ServiceRecord> {
    const { tenants } = this.#tenancy.tenancy;
    const affected = new Set<ServiceRecord>();
    const names =
      changedTenants === 'all' ? new Set([...tenants.keys(), ...this.#excessByTenant.keys()]) : changedTenants;
    for (const name of names) {
      const tenant = tenants.get(name);
      const message = tenant && this.#allocator.quota.excessOf(tenant);
      if (message === this.#excessByTenant.get(name)) continue;
      if (message === undefined) this.#excessByTenant.delete(name);
      else this.#excessByTenant.set(name, message);
      for (const record of this.#services.ofTenant(name)) affected.add(record);
    }
    return affected;
  }

  /** Updates the entries of `records`, and of the Services whose share of the bytes of their tenant has changed. */
  #updateEntries(records: ReadonlySet<ServiceRecord>, changedTenants: Iterable<string>): EntryReplacement[] {
    const { tenants } = this.#tenancy.tenancy;
    const translatedByRecord = new Map<ServiceRecord, TranslatedService>();
    const tenantNames = new Set(changedTenants);
    for (const record of records) {
      const translated = this.#translateService(record);
      if (translated === undefined) continue;
      translatedByRecord.set(record, translated);
      this.#endpointBudgets.setDemand(record, record.tenant, translated.endpoints.bytes);
      if (record.tenant !== null) tenantNames.add(record.tenant);
    }
    for (const name of tenantNames) {
      const bytes =
        (tenants.get(name)?.limits.tableBytes ?? Number.POSITIVE_INFINITY) - this.#allocator.quota.bytesOf(name);
      for (const record of this.#endpointBudgets.divide(name, bytes)) {
        const translated = translatedByRecord.get(record) ?? this.#translateService(record);
        if (translated !== undefined) translatedByRecord.set(record, translated);
      }
    }
    return [...translatedByRecord].map(([record, translated]) => this.#replaceEntries(record, translated));
  }

  #translateService(record: ServiceRecord): TranslatedService | undefined {
    if (record.decision === undefined) return undefined;
    const checkTrust = this.#trust.checkFor(this.#tenancy.tenancy);
    const served = this.#servedEndpoints.checkFor(record);
    const checkEndpoint: EndpointCheck = (endpoint, protocol) => {
      const distrust = checkTrust(record.service.namespace, endpoint);
      if (distrust !== undefined)
        return { subject: distrust === RESERVED_ON_NODES ? 'port' : 'address', reason: distrust };
      const reason = served.check(endpoint, protocol);
      return reason === undefined ? undefined : { subject: 'port', reason };
    };
    const tenant = this.#tenancy.tenancy.tenants.get(record.tenant ?? '');
    const translated = translateService(record.decision, {
      slices: this.#slices,
      checkEndpoint,
      excess: this.#excessByTenant.get(record.tenant ?? ''),
      previousPortNames: record.servedPortNames,
      maxEndpointBytes: tenant?.limits.tableBytes ?? Number.POSITIVE_INFINITY,
    });
    this.#servedEndpoints.setPorts(record, served.ports);
    return translated;
  }

  #replaceEntries(record: ServiceRecord, complete: TranslatedService): EntryReplacement {
    const { entries: before } = record;
    const tenant = this.#tenancy.tenancy.tenants.get(record.tenant ?? '');
    const translated = withEndpointsWithin(complete, this.#endpointBudgets.budgetOf(record), tenant);
    record.servedPortNames = translated.settings === null ? new Map() : servedPortNames(translated.ports);
    record.endpoints = translated.endpoints.entries;
    record.entries = serviceEntriesFor(translated);
    this.#problems.set(record, serviceProblems(translated, this.#nodes.entries.length > 0));
    return { before, after: record.entries };
  }

  #setProblems(snapshot: Snapshot): void {
    const context = {
      services: this.#services,
      hasTenant: (tenant: string) => this.#tenancy.tenancy.tenants.has(tenant),
      hasNamespace: (name: string) => this.#tenancy.hasNamespace(name),
      hasNodes: this.#nodes.entries.length > 0,
    };
    this.#problems.set('source', snapshot.problems);
    this.#problems.set('nodes', this.#nodes.problems);
    this.#problems.set('fleet', fleetProblems(snapshot, context));
    this.#problems.set('suspensions', suspensionProblems(snapshot, context));
  }
}

/** Returns the names of the Secrets that the Service requests now, and of the Secrets in its last accepted settings. */
function secretsNamedBy({ service, allocation }: ServiceRecord): readonly string[] {
  const parsed = serviceSettingsFor(service);
  const requested = parsed.kind === 'settings' ? parsed.settings.tls : undefined;
  return [requested, allocation?.settings.tls].flatMap((tls) =>
    tls === undefined
      ? []
      : [
          ...keySecretsOf(tls).map(({ name }) => name),
          tls.clientCaSecret ?? tls.secret,
          tls.backend?.caSecret ?? tls.secret,
        ],
  );
}

function configMapsNamedBy({ service, allocation }: ServiceRecord): readonly string[] {
  const parsed = serviceSettingsFor(service);
  const requested = parsed.kind === 'settings' ? parsed.settings : undefined;
  return [requested, allocation?.settings].flatMap((settings) => configMapsOf(settings));
}

function namespaceOf(path: string): string {
  return path.slice(0, path.indexOf('/'));
}
