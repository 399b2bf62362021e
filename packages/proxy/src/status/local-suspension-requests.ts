// Answers `weir suspend --local`, `weir resume --local` and `weir get suspensions --local` on the local admin socket.
// The parameters are in the query, so that an administrator can also send these requests with curl.
import { entriesOf, isTargetOf, parseDuration, type RoutingTable, type Suspension } from '@weir/model/data-plane';
import { type LocalSuspensions, MAX_LOCAL_SUSPENSIONS } from '../supervisor/local-suspensions.ts';

export interface LocalSuspensionAccess {
  readonly node: string;
  readonly suspensions: LocalSuspensions;
  /** Returns this node's part of the routing table; undefined before the first table. */
  readonly table: () => RoutingTable | undefined;
  /** Resolves when all workers have applied the suspensions. */
  readonly untilApplied: () => Promise<void>;
  /** Returns milliseconds since the epoch. */
  readonly now: () => number;
}

/** The response to each of the requests. */
export interface LocalSuspensionResponse {
  readonly node: string;
  /** The suspensions that the request made, ended or lists. */
  readonly suspensions: readonly Suspension[];
  /**
   * How many Services of this node belong to the target. Absent for a list, and while the node has no routing table.
   */
  readonly services?: number;
  /** False if the change could not be written to the state directory. A restart of the proxy then undoes the change. */
  readonly saved: boolean;
}

export type LocalSuspensionOutcome =
  | { readonly status: 200; readonly response: LocalSuspensionResponse }
  | { readonly status: 400 | 404 | 409; readonly error: string };

export const LOCAL_SUSPENSION_PATHS: Readonly<Record<string, 'GET' | 'POST'>> = {
  '/suspend': 'POST',
  '/resume': 'POST',
  '/suspensions': 'GET',
};

/** The console has the same limit. */
const MAX_MESSAGE_CHARACTERS = 512;
const MAX_USER_CHARACTERS = 128;

export async function respondToLocalSuspension(
  path: string,
  query: URLSearchParams,
  access: LocalSuspensionAccess,
): Promise<LocalSuspensionOutcome> {
  const { suspensions } = access;
  if (path === '/suspensions') return success(access, suspensions.inForce);
  const target = targetIn(query);
  if (target === undefined)
    return {
      status: 400,
      error: 'invalid target: expected tenant=NAME, namespace=NAME, or namespace=NAME&service=NAME',
    };
  const user = query.get('by')?.slice(0, MAX_USER_CHARACTERS) || undefined;
  return path === '/suspend' ? suspend({ target, user, query }, access) : resume({ target, user }, access);
}

interface SuspendRequest {
  readonly target: Suspension['target'];
  readonly user: string | undefined;
  readonly query: URLSearchParams;
}

async function suspend(
  { target, user, query }: SuspendRequest,
  access: LocalSuspensionAccess,
): Promise<LocalSuspensionOutcome> {
  const message = (query.get('message') ?? '').trim();
  if (message === '' || message.length > MAX_MESSAGE_CHARACTERS)
    return { status: 400, error: `invalid message: expected a text of 1 to ${MAX_MESSAGE_CHARACTERS} characters` };
  const duration = query.get('for');
  const durationMs = duration === null ? null : parseDuration(duration);
  if (durationMs === undefined || durationMs === 0)
    return { status: 400, error: `invalid for "${duration}": expected a duration such as 30s, 10m or 2h` };
  const until = durationMs === null ? null : access.now() + durationMs;
  const suspension = await access.suspensions.suspend({ target, message, until, madeBy: user });
  if (suspension === undefined)
    return {
      status: 409,
      error: `this node already has ${MAX_LOCAL_SUSPENSIONS} local suspensions; resume one of them, or suspend a whole tenant or namespace`,
    };
  await access.untilApplied();
  return success(access, [suspension], target);
}

async function resume(
  { target, user }: Omit<SuspendRequest, 'query'>,
  access: LocalSuspensionAccess,
): Promise<LocalSuspensionOutcome> {
  const suspension = await access.suspensions.resume(target, user);
  if (suspension === undefined) return { status: 404, error: 'this node has no local cut-off of the target' };
  await access.untilApplied();
  return success(access, [suspension], target);
}

function success(
  { node, suspensions, table }: LocalSuspensionAccess,
  listed: readonly Suspension[],
  target?: Suspension['target'],
): LocalSuspensionOutcome {
  const known = table();
  const services =
    target === undefined || known === undefined
      ? undefined
      : entriesOf(known, 'service').filter((entry) => isTargetOf(target, entry)).length;
  return {
    status: 200,
    response: {
      node,
      suspensions: listed,
      ...(services === undefined ? {} : { services }),
      saved: suspensions.isSaved,
    },
  };
}

function targetIn(query: URLSearchParams): Suspension['target'] | undefined {
  const [tenant, namespace, service] = ['tenant', 'namespace', 'service'].map((name) => query.get(name) ?? '');
  if (tenant && !namespace && !service) return { kind: 'tenant', tenant };
  if (tenant || !namespace) return undefined;
  return service ? { kind: 'service', namespace, service } : { kind: 'namespace', namespace };
}
