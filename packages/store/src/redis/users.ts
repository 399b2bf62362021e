/** The user of Redis that each kind of process may have to itself. */
export type RedisUser = 'weir-controller' | 'weir-proxy' | 'weir-console';

const ACL_COMMANDS = '+@read +@write +@scripting +@transaction +@connection -@dangerous +info +time';

/**
 * The rights of each user, as rules of `ACL SETUSER` (Redis 7): the same for the manual, for the chart and for whoever tests them. To be
 * preceded by `on` and a password.
 */
export function redisUsersFor(fleet: string): Readonly<Record<RedisUser, string>> {
  const all = (names: string, mode: '' | '%R' = ''): string =>
    names
      .split(' ')
      .map((name) => `${mode}~weir:{${fleet}}:${name}`)
      .join(' ');
  return {
    'weir-controller': `${ACL_COMMANDS} ${all('*')}`,
    'weir-proxy': `${ACL_COMMANDS} ${all('meta table keys changes cutoff*', '%R')} ${all('lives proxies proxy:* usage:*')}`,
    'weir-console': `${ACL_COMMANDS} ${all('meta table changes lives proxies proxy:* usage:*', '%R')} ${all('cutoff*')}`,
  };
}
