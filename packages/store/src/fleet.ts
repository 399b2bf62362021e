import { Secret, type SettingFormat } from '@weir/runtime';

/** The minimum length of a fleet secret. 32 random characters cannot be guessed. */
const MIN_SECRET_CHARACTERS = 32;

/** The secret that encrypts private keys in the store. All processes of a fleet must have the same secret. */
export const FLEET_SECRET_FORMAT: SettingFormat<Secret> = {
  allowed: `a secret of at least ${MIN_SECRET_CHARACTERS} characters, the same for the controller and all proxies of the fleet, such as the output of: openssl rand -hex 32`,
  parse(raw) {
    const text = raw.trim();
    return text.length < MIN_SECRET_CHARACTERS || /\p{Cc}/u.test(text) ? undefined : new Secret(text);
  },
  redact: () => '[redacted]',
};

/** The format of a fleet's name. The name is part of Redis keys and of the name of a Lease. The name of a Lease must be a DNS name. */
export const FLEET_NAME_FORMAT: { readonly pattern: RegExp; readonly allowed: string } = {
  pattern: /^(?!.{64})[a-z0-9]+(?:(?:-+|\.)[a-z0-9]+)*$/,
  allowed: 'up to 63 lower-case letters and digits, with "-" and "." between them',
};
