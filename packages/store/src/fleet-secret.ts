import { type Format, Secret } from '@weir/runtime';

/** So many that nobody tries them all. */
const SHORTEST = 32;

/** What private keys are sealed with on their way through the store: all processes of the fleet must take the same text for it. */
export const FLEET_SECRET: Format<Secret> = {
  allowed: `a secret of at least ${SHORTEST} characters, the same for the controller and all proxies of the fleet, such as of: openssl rand -hex 32`,
  parse(raw) {
    const text = raw.trim();
    return text.length < SHORTEST || /\p{Cc}/u.test(text) ? undefined : new Secret(text);
  },
  show: () => '[redacted]',
};
