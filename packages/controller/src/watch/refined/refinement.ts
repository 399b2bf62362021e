// When what an API server says of a Service's endpoints is used instead of the files, and when both are. Whoever balances API servers
// hears of them through itself: a list that is wrong would cut it off from the one who could correct it, so none is ever the last word.
import type { ServiceObject, SliceObject } from '@weir/model';

export type LiveSlices =
  /** Nothing usable was ever read: the files serve. */
  | { readonly kind: 'none' }
  /** From the disk, or of a Service that was gone meanwhile: how old it is nobody knows, so the files serve as well. */
  | { readonly kind: 'unread'; readonly slices: readonly SliceObject[] }
  /** Read by this process: it serves instead of the files. */
  | { readonly kind: 'alone'; readonly slices: readonly SliceObject[] }
  /** While it served alone the API server fell silent: the files serve as well, until it says something else. */
  | { readonly kind: 'failed'; readonly slices: readonly SliceObject[] };

/** With a list that lacks nothing. */
export function withCompleteList(before: LiveSlices, slices: readonly SliceObject[]): LiveSlices {
  const isFailed = before.kind === 'failed' && endpointsIn(before.slices) === endpointsIn(slices);
  return { kind: isFailed ? 'failed' : 'alone', slices };
}

/** After a time in which it was not asked for: how old it is nobody knows. */
export function asUnread(before: LiveSlices): LiveSlices {
  return before.kind === 'alone' ? { ...before, kind: 'unread' } : before;
}

/** The API server has not answered for a while. */
export function asFailed(before: LiveSlices): LiveSlices {
  return before.kind === 'alone' ? { ...before, kind: 'failed' } : before;
}

/** What a Service's endpoints are taken from. */
export function effectiveSlices(files: readonly SliceObject[], refinement: LiveSlices): readonly SliceObject[] {
  switch (refinement.kind) {
    case 'none':
      return files;
    case 'alone':
      return refinement.slices;
    case 'unread':
    case 'failed':
      return [...files, ...refinement.slices];
  }
}

/** Why a list cannot serve, to be said after "has"; undefined: each port of the Service has an endpoint in it. */
export function missingEndpoints(
  { ports, publishNotReadyAddresses }: Pick<ServiceObject, 'ports' | 'publishNotReadyAddresses'>,
  slices: readonly SliceObject[],
): string | undefined {
  const ready = slices.filter(({ endpoints }) =>
    endpoints.some((each) => each.addresses.length > 0 && (each.ready || publishNotReadyAddresses)),
  );
  if (ready.length === 0) return 'no ready endpoint';
  const offered = ready.flatMap((slice) => slice.ports.filter(({ port }) => port !== null));
  const missing = ports.find(
    ({ name, protocol }) => !offered.some((each) => (each.name ?? '') === (name ?? '') && each.protocol === protocol),
  );
  if (missing === undefined) return undefined;
  const names = [...new Set(offered.map(({ name, port }) => (name === null ? `${port} without a name` : `"${name}"`)))];
  return `no endpoint for port ${missing.port}${missing.name === null ? '' : ` "${missing.name}"`}, only for ${names.join(', ') || 'none'}: name the port of the Service as its endpoints do`;
}

/** The same text for the same endpoints, in whatever slices. */
function endpointsIn(slices: readonly SliceObject[]): string {
  const endpoints = slices.flatMap((slice) =>
    slice.endpoints
      .filter(({ ready }) => ready)
      .flatMap(({ addresses }) => addresses.flatMap((address) => slice.ports.map(({ port }) => `${address} ${port}`))),
  );
  return [...new Set(endpoints)].sort().join('\n');
}
