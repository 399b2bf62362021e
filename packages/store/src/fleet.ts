import { Secret, type SettingFormat } from '@weir/runtime';

/** So many that nobody tries them all. */
const MIN_SECRET_CHARACTERS = 32;

/** What private keys are sealed with on their way through the store: all processes of the fleet must take the same text for it. */
export const FLEET_SECRET_FORMAT: SettingFormat<Secret> = {
  allowed: `a secret of at least ${MIN_SECRET_CHARACTERS} characters, the same for the controller and all proxies of the fleet, such as of: openssl rand -hex 32`,
  parse(raw) {
    const text = raw.trim();
    return text.length < MIN_SECRET_CHARACTERS || /\p{Cc}/u.test(text) ? undefined : new Secret(text);
  },
  redact: () => '[redacted]',
};

/** What may name a fleet: it is part of Redis keys, and of the name of a Lease, which is a DNS name. */
export const FLEET_NAME_FORMAT: { readonly pattern: RegExp; readonly allowed: string } = {
  pattern: /^(?!.{64})[a-z0-9]+(?:(?:-+|\.)[a-z0-9]+)*$/,
  allowed: 'up to 63 lower-case letters and digits, with "-" and "." between them',
};
