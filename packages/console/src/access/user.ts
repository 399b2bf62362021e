import { createHash } from 'node:crypto';
import { compareText } from '@weir/model';

/** The API server's description of a user. */
export interface UserInfo {
  readonly name: string;
  readonly uid: string;
  readonly groups: readonly string[];
  readonly extra: Readonly<Record<string, readonly string[]>>;
}

export interface AuthenticatedUser extends UserInfo {
  /** A hash of all user fields that the API server's authorizer reads. Users with the same key have the same rights. */
  readonly key: string;
}

export function authenticatedUser(user: UserInfo): AuthenticatedUser {
  const { name, uid, groups, extra } = user;
  const sorted = Object.entries(extra).sort(([a], [b]) => compareText(a, b));
  const key = createHash('sha256')
    .update(JSON.stringify([name, uid, groups, sorted]))
    .digest('base64');
  return { ...user, key };
}
