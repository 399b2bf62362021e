/** What listeners and ports of one number have in common: TCP and UDP are two. */
export function portKey({ port, protocol }: { readonly port: number; readonly protocol: string }): string {
  return `${protocol}/${port}`;
}
