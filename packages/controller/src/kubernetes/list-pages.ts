import type { Json, KubeApi } from './kube-api.ts';
import { KubeApiError } from './kube-api-error.ts';

const DEFAULT_PAGE_SIZE = 500;

export interface ListRequest {
  readonly path: string;
  readonly query?: Readonly<Record<string, string>>;
}

/** Yields the objects of a list page by page. If the kind is not installed, yields one empty page. */
export async function* listPages(
  { path, query = {} }: ListRequest,
  { api, signal, pageSize = DEFAULT_PAGE_SIZE }: ListPagesOptions,
): AsyncGenerator<readonly Json[]> {
  let continueToken: string | undefined;
  do {
    const page = await readPage({
      path,
      query: { ...query, limit: String(pageSize), ...(continueToken !== undefined && { continue: continueToken }) },
    });
    yield page?.items ?? [];
    continueToken = page?.metadata?.continue || undefined;
  } while (continueToken !== undefined);

  async function readPage(request: ListRequest): Promise<Page | undefined> {
    try {
      return (await api.request({ method: 'GET', ...request, ...(signal && { signal }) })) as Page;
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
