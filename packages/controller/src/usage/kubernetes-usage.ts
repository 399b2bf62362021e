import { errorMessage, type Logger } from '@weir/runtime';
import { ApiError } from '../kubernetes/api-error.ts';
import { FIELD_MANAGER, type Json, type KubeApi, SERVER_SIDE_APPLY } from '../kubernetes/kube-api.ts';
import { readTenantUsage } from './read-tenant-usage.ts';
import type { TenantUsage } from './tenant-usage.ts';
import type { Archived, UsageArchive } from './usage-archive.ts';

const ALL = '/apis/weir.dev/v1alpha1/tenantusages';
const NAME = 'weir';
const PAGE = '500';

/** The TenantUsage objects of a cluster. Where the kind is not installed there is nothing, and nothing is kept. */
export class KubernetesUsage implements UsageArchive {
  readonly #api: Pick<KubeApi, 'request'>;
  readonly #log: Logger;

  constructor({ api, log }: { readonly api: Pick<KubeApi, 'request'>; readonly log: Logger }) {
    this.#api = api;
    this.#log = log;
  }

  async read(): Promise<readonly TenantUsage[]> {
    const found: TenantUsage[] = [];
    let from: string | undefined;
    do {
      const page = await this.#page(from);
      for (const item of page.items) {
        const usage = readTenantUsage(item);
        if (usage !== undefined) found.push(usage);
        else this.#log.warn({ object: nameOf(item) }, 'a TenantUsage cannot be read and is left out');
      }
      from = page.from;
    } while (from !== undefined);
    return found;
  }

  async write({ namespace, status }: TenantUsage): Promise<Archived> {
    try {
      await this.#api.request({
        method: 'PATCH',
        path: pathOf(namespace),
        query: { fieldManager: FIELD_MANAGER, force: 'true' },
        contentType: SERVER_SIDE_APPLY,
        body: { apiVersion: 'weir.dev/v1alpha1', kind: 'TenantUsage', metadata: { name: NAME, namespace }, status },
      });
    } catch (error) {
      if (!(error instanceof ApiError) || error.code === 'AWAY') throw error;
      return isGoing(error) ? { kind: 'left-out' } : { kind: 'refused', reason: errorMessage(error) };
    }
    return { kind: 'written' };
  }

  async remove(namespace: string): Promise<void> {
    try {
      await this.#api.request({ method: 'DELETE', path: pathOf(namespace) });
    } catch (error) {
      if (!(error instanceof ApiError && error.code === 'NOT_FOUND')) throw error;
    }
  }

  async #page(
    from: string | undefined,
  ): Promise<{ readonly items: readonly Json[]; readonly from: string | undefined }> {
    try {
      const query = { limit: PAGE, ...(from !== undefined && { continue: from }) };
      const { items, metadata } = (await this.#api.request({ method: 'GET', path: ALL, query })) as {
        items?: readonly Json[];
        metadata?: { continue?: string };
      };
      return { items: items ?? [], from: metadata?.continue || undefined };
    } catch (error) {
      if (error instanceof ApiError && error.code === 'NOT_FOUND') return { items: [], from: undefined };
      throw error;
    }
  }
}

function isGoing(error: ApiError): boolean {
  // Without a name it is the kind that is missing, which somebody has to install.
  const isGone = error.code === 'NOT_FOUND' && error.missing !== undefined;
  return isGone || error.message.includes('being terminated');
}

function pathOf(namespace: string): string {
  return `/apis/weir.dev/v1alpha1/namespaces/${namespace}/tenantusages/${NAME}`;
}

function nameOf(item: Json): string {
  const { namespace, name } = (item.metadata ?? {}) as { namespace?: string; name?: string };
  return `${namespace}/${name}`;
}
