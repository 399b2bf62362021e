/** What may name a fleet: it is part of Redis keys, and of the name of a Lease, which is a DNS name. */
export const FLEET_NAME_FORMAT: { readonly pattern: RegExp; readonly allowed: string } = {
  pattern: /^(?!.{64})[a-z0-9]+(?:(?:-+|\.)[a-z0-9]+)*$/,
  allowed: 'up to 63 lower-case letters and digits, with "-" and "." between them',
};
