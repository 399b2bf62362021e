import { isIP } from 'node:net';

const MAX_HOST_NAME_LENGTH = 253;
/** Underscores are in real names, though not in those that Kubernetes has. */
const LABEL_PATTERN = /^[a-z0-9_]([a-z0-9_-]{0,61}[a-z0-9_])?$/;

/**
 * A `host_name` as it is compared: lower case, no dot at the end. Null: an IP address, which RFC 6066 does not take for a
 * name and some clients send all the same. Undefined: no host can be called so; names in other scripts come as A-labels.
 */
export function parseHostName(text: string): string | null | undefined {
  if (isIP(text) !== 0) return null;
  const name = (text.endsWith('.') ? text.slice(0, -1) : text).toLowerCase();
  return name.length <= MAX_HOST_NAME_LENGTH && name.split('.').every((label) => LABEL_PATTERN.test(label))
    ? name
    : undefined;
}
