import type { Counters, RequestsByCodeClass } from '@weir/model';
import { errorMessage, type Logger } from '@weir/runtime';
import {
  FIELD_MANAGER,
  type Json,
  type KubeApi,
  SERVER_SIDE_APPLY,
  WEIR_API_PATH,
  WEIR_API_VERSION,
} from '../kubernetes/kube-api.ts';
import { isSingleObjectFailure, KubeApiError } from '../kubernetes/kube-api-error.ts';
import { listPages } from '../kubernetes/list-pages.ts';
import { COUNT, Fields, type TextFormat, TIMESTAMP } from '../parse/fields.ts';
import type { ArchiveOutcome, IncarnationUsage, ServiceUsageEntry, TenantUsage, UsageArchive } from './tenant-usage.ts';

const TENANT_USAGES_PATH = `${WEIR_API_PATH}/tenantusages`;

export interface KubernetesUsageArchiveOptions {
  readonly api: Pick<KubeApi, 'request'>;
  readonly fleet: string;
  readonly log: Logger;
}

/**
 * Keeps usage in TenantUsage objects. Each namespace has one TenantUsage per fleet, named after the fleet, because fleets in one
 * cluster count separately. If the kind is not installed, the archive is empty and refuses writes.
 */
export class KubernetesUsageArchive implements UsageArchive {
  readonly #api: Pick<KubeApi, 'request'>;
  readonly #fleet: string;
  readonly #log: Logger;
  /**
   * The version of each TenantUsage that this process last wrote or read. Writes contain this version, so that a delayed write cannot
   * undo a write of a later leader.
   */
  readonly #versionByNamespace = new Map<string, string>();

  constructor({ api, fleet, log }: KubernetesUsageArchiveOptions) {
    this.#api = api;
    this.#fleet = fleet;
    this.#log = log;
  }

  async read(): Promise<readonly TenantUsage[]> {
    const usages: TenantUsage[] = [];
    const query = { fieldSelector: `metadata.name=${this.#fleet}` };
    for await (const page of listPages({ path: TENANT_USAGES_PATH, query }, { api: this.#api })) {
      for (const item of page) {
        this.#recordVersion(item);
        const usage = parseTenantUsage(item);
        if (usage !== undefined) usages.push(usage);
        else this.#log.warn({ object: nameOf(item) }, 'failed to parse a TenantUsage; ignoring it');
      }
    }
    return usages;
  }

  async write({ namespace, status }: TenantUsage): Promise<ArchiveOutcome> {
    try {
      await this.#apply({ namespace, status });
    } catch (error) {
      if (!(error instanceof KubeApiError) || (error.code === 'AWAY' && !isSingleObjectFailure(error))) throw error;
      return isNamespaceGone(error) ? { kind: 'namespace-gone' } : { kind: 'refused', reason: errorMessage(error) };
    }
    return { kind: 'written' };
  }

  /**
   * Writes a TenantUsage. After a conflict, writes again without a version, because the leader overrides manual edits.
   * `leaderOnlyApi` prevents the second write if this controller has lost leadership.
   */
  async #apply(usage: TenantUsage): Promise<void> {
    const version = this.#versionByNamespace.get(usage.namespace);
    this.#versionByNamespace.delete(usage.namespace);
    try {
      this.#recordVersion(await this.#patch(usage, version));
    } catch (error) {
      if (version === undefined || !(error instanceof KubeApiError && error.code === 'CONFLICT')) throw error;
      this.#recordVersion(await this.#patch(usage, undefined));
    }
  }

  #patch({ namespace, status }: TenantUsage, resourceVersion: string | undefined): Promise<Json> {
    const metadata = { name: this.#fleet, namespace, ...(resourceVersion !== undefined && { resourceVersion }) };
    return this.#api.request({
      method: 'PATCH',
      path: pathOf(namespace, this.#fleet),
      query: { fieldManager: FIELD_MANAGER, force: 'true' },
      contentType: SERVER_SIDE_APPLY,
      body: { apiVersion: WEIR_API_VERSION, kind: 'TenantUsage', metadata, status },
    });
  }

  #recordVersion(item: Json): void {
    const { namespace, resourceVersion } = (item.metadata ?? {}) as { namespace?: string; resourceVersion?: string };
    if (namespace !== undefined && resourceVersion !== undefined)
      this.#versionByNamespace.set(namespace, resourceVersion);
  }

  async remove(namespace: string): Promise<void> {
    this.#versionByNamespace.delete(namespace);
    try {
      await this.#api.request({ method: 'DELETE', path: pathOf(namespace, this.#fleet) });
    } catch (error) {
      if (error instanceof KubeApiError && error.code === 'NOT_FOUND') return;
      if (!isSingleObjectFailure(error)) throw error;
      this.#log.warn({ namespace, reason: errorMessage(error) }, 'failed to delete a TenantUsage; retrying later');
    }
  }
}

function isNamespaceGone(error: KubeApiError): boolean {
  // A 404 without the name of an object means that the kind is missing.
  const isGone = error.code === 'NOT_FOUND' && error.missingName !== undefined;
  return isGone || error.message.includes('being terminated');
}

function pathOf(namespace: string, name: string): string {
  return `${WEIR_API_PATH}/namespaces/${namespace}/tenantusages/${name}`;
}

function nameOf(item: Json): string {
  const { namespace, name } = (item.metadata ?? {}) as { namespace?: string; name?: string };
  return `${namespace}/${name}`;
}

const NON_EMPTY_TEXT: TextFormat = { allowed: 'text', matches: (text) => text !== '' };

/** Parses a TenantUsage. Returns undefined if the format is unknown, because another client or a newer version of Weir wrote the object. */
export function parseTenantUsage(raw: unknown): TenantUsage | undefined {
  const mistakes: string[] = [];
  const fields = new Fields(raw, mistakes);
  const status = fields.object('status');
  const usage = {
    namespace: fields.object('metadata').requiredText('namespace', NON_EMPTY_TEXT),
    status: {
      updatedAt: status.requiredText('updatedAt', TIMESTAMP),
      months: status.objects('months').map((month) => ({
        month: month.requiredText('month', NON_EMPTY_TEXT),
        services: month.objects('services').map(readService),
      })),
      lives: status.objects('lives').map(readIncarnation),
    },
  };
  return mistakes.length === 0 ? usage : undefined;
}

function readService(fields: Fields): ServiceUsageEntry {
  return { ...readSlot(fields), name: fields.requiredText('name', NON_EMPTY_TEXT), ...readCounters(fields) };
}

function readIncarnation(fields: Fields): IncarnationUsage {
  const node = fields.requiredText('node', NON_EMPTY_TEXT);
  return { ...readSlot(fields), node, life: fields.requiredInteger('life', COUNT), ...readCounters(fields) };
}

function readSlot(fields: Fields): { readonly uid: string; readonly tenant: string } {
  return { uid: fields.requiredText('uid', NON_EMPTY_TEXT), tenant: fields.requiredText('tenant', NON_EMPTY_TEXT) };
}

function readCounters(fields: Fields): Counters {
  return {
    receivedBytes: fields.requiredInteger('receivedBytes', COUNT),
    sentBytes: fields.requiredInteger('sentBytes', COUNT),
    connections: fields.requiredInteger('connections', COUNT),
    requests: fields.requiredInteger('requests', COUNT),
    // A version without code classes wrote no such field.
    ...(fields.has('requestsByCodeClass') && {
      requestsByCodeClass: readClasses(fields.object('requestsByCodeClass')),
    }),
  };
}

function readClasses(fields: Fields): RequestsByCodeClass {
  return {
    '2xx': fields.requiredInteger('2xx', COUNT),
    '3xx': fields.requiredInteger('3xx', COUNT),
    '4xx': fields.requiredInteger('4xx', COUNT),
    '5xx': fields.requiredInteger('5xx', COUNT),
    none: fields.requiredInteger('none', COUNT),
  };
}
