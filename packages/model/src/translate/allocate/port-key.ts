/** What listeners and ports of one number have in common: TCP and UDP are two. */
export function portKey({ port, protocol }: { readonly port: number; readonly protocol: string }): string {
  return `${protocol}/${port}`;
}

/** A host on such a port: what one Service of a pool has at a time. */
export function portHostKey(port: { readonly port: number; readonly protocol: string }, host: string): string {
  return `${portKey(port)}/${host}`;
}

/** Not a port of one Service alone, but some share of it: no host is the empty text. */
export function portShareKey(port: { readonly port: number; readonly protocol: string }): string {
  return portHostKey(port, '');
}
