import type { KubeApi } from '@weir/controller';

const PAGE_LIMIT = '500';

/** Every object of a kind, page by page. `read` keeps what is needed: a cluster may have many thousands. */
export async function listAllPages<T>(
  api: Pick<KubeApi, 'request'>,
  { path, signal, read }: { readonly path: string; readonly signal: AbortSignal; read(raw: unknown): T | undefined },
): Promise<readonly T[]> {
  const found: T[] = [];
  let from: string | undefined;
  do {
    const query = { limit: PAGE_LIMIT, ...(from !== undefined && { continue: from }) };
    const { items, metadata } = (await api.request({ method: 'GET', path, query, signal })) as ListPage;
    for (const item of items ?? []) {
      const object = read(item);
      if (object !== undefined) found.push(object);
    }
    from = metadata?.continue || undefined;
  } while (from !== undefined);
  return found;
}

interface ListPage {
  readonly items?: readonly unknown[] | null;
  readonly metadata?: { readonly continue?: string };
}
