import { createHash } from 'node:crypto';

/** Who the API server says that somebody is. */
export interface UserInfo {
  readonly name: string;
  readonly uid: string;
  readonly groups: readonly string[];
  readonly extra: Readonly<Record<string, readonly string[]>>;
}

/** Two users of one key have the same rights: all that an authorizer is told of them is in it. */
export interface AuthenticatedUser extends UserInfo {
  readonly key: string;
}

export function authenticatedUser(user: UserInfo): AuthenticatedUser {
  const { name, uid, groups, extra } = user;
  const sorted = Object.entries(extra).sort(([a], [b]) => (a < b ? -1 : 1));
  const key = createHash('sha256')
    .update(JSON.stringify([name, uid, groups, sorted]))
    .digest('base64');
  return { ...user, key };
}
