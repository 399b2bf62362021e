import type { Json, KubeApi } from './kube-api.ts';
import { KubeApiError } from './kube-api-error.ts';

const PAGE_SIZE = 500;

export interface ListRequest {
  readonly path: string;
  readonly query?: Readonly<Record<string, string>>;
}

/** The objects of a list, a page at a time; none of a kind that is not installed. */
export async function* listPages(
  { path, query = {} }: ListRequest,
  { api, signal, pageSize = PAGE_SIZE }: ListPagesOptions,
): AsyncGenerator<readonly Json[]> {
  let from: string | undefined;
  do {
    const page = await pageAt({
      path,
      query: { ...query, limit: String(pageSize), ...(from !== undefined && { continue: from }) },
    });
    yield page?.items ?? [];
    from = page?.metadata?.continue || undefined;
  } while (from !== undefined);

  async function pageAt(listing: ListRequest): Promise<Page | undefined> {
    try {
      return (await api.request({ method: 'GET', ...listing, ...(signal && { signal }) })) as Page;
    } catch (error) {
      if (error instanceof KubeApiError && error.code === 'NOT_FOUND') return undefined;
      throw error;
    }
  }
}

export interface ListPagesOptions {
  readonly api: Pick<KubeApi, 'request'>;
  readonly signal?: AbortSignal;
  readonly pageSize?: number;
}

interface Page {
  readonly items?: readonly Json[];
  readonly metadata?: { readonly continue?: string };
}
