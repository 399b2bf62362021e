import { isIP } from 'node:net';

const LONGEST_NAME = 253;
/** Underscores are in real names, though not in those that Kubernetes has. */
const LABEL = /^[a-z0-9_]([a-z0-9_-]{0,61}[a-z0-9_])?$/;

/**
 * A `host_name` as it is compared: lower case, no dot at the end. Null: an IP address, which RFC 6066 does not take for a
 * name and some clients send all the same. Undefined: no host can be called so; names in other scripts come as A-labels.
 */
export function hostNameOf(text: string): string | null | undefined {
  if (isIP(text) !== 0) return null;
  const name = (text.endsWith('.') ? text.slice(0, -1) : text).toLowerCase();
  return name.length <= LONGEST_NAME && name.split('.').every((label) => LABEL.test(label)) ? name : undefined;
}
