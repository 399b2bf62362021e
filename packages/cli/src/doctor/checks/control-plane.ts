import type { Facts, LeaseFact } from '../facts.ts';
import { type CheckResult, error, joinList, notChecked, ok, REDIS_UNAVAILABLE, warning } from '../finding.ts';

const MIN_KUBERNETES_MINOR = 30;

/** Also stands for an API server that does not answer. */
export function kubernetesVersion({ server }: Facts): CheckResult {
  if (server.kind === 'unknown') {
    return server.cause === 'failed' ? error(`not checked: ${server.message}`) : notChecked(server);
  }
  const { version } = server.value;
  const [, major, minor] = /^v?(\d+)\.(\d+)/.exec(version) ?? [];
  if (major === undefined || minor === undefined) return warning(`not checked: its version is "${version}"`);
  const isNewEnough = Number(major) > 1 || (Number(major) === 1 && Number(minor) >= MIN_KUBERNETES_MINOR);
  return isNewEnough
    ? ok(`${version} is 1.${MIN_KUBERNETES_MINOR} or later`)
    : error(
        `${version} does not know ipMode: Proxy, so kube-proxy catches the published addresses, past limits and accounting; Weir needs 1.${MIN_KUBERNETES_MINOR} or later`,
      );
}

const REQUIRED_RESOURCES = ['tenantpolicies', 'suspensions', 'tenantusages'] as const;

export function customResources({ customResources: served }: Facts): CheckResult {
  if (served.kind === 'unknown') return notChecked(served);
  const missing = REQUIRED_RESOURCES.filter((name) => !served.value.includes(name));
  return missing.length === 0
    ? ok(`${REQUIRED_RESOURCES.join(', ')} are served`)
    : error(`${missing.join(', ')} ${verbFor(missing, 'is', 'are')} not served; ${INSTALL_HINT}`);
}

const INSTALL_HINT =
  'install the custom resources of Weir: helm upgrade with crds.install, or kubectl apply -f charts/weir-crds/definitions (if they are there: kubectl get crd shows why not)';

/** An endpoint at a cluster IP leads to another tenant's Service. */
export function serviceRanges({ serviceRanges: told, serviceCidrs }: Facts): CheckResult {
  if (serviceCidrs !== undefined)
    return ok(`${serviceCidrs} (WEIR_SERVICE_CIDRS)${additionalRangesText(told)}; no endpoint may be there`);
  if (told.kind === 'unknown') return notChecked(told);
  if (told.value.length > 0) return ok(`${joinList(told.value)}; no endpoint may be there`);
  return warning(
    'the API server does not tell their ranges (ServiceCIDR, from Kubernetes 1.33), so where allowedEndpointCIDRs are wide only those that a Service has now are refused as endpoints; set WEIR_SERVICE_CIDRS of the controller (it is --service-cluster-ip-range of the API server), and for this check, too',
  );
}

function additionalRangesText(told: Facts['serviceRanges']): string {
  return told.kind === 'known' && told.value.length > 0 ? `, and ${joinList(told.value)}` : '';
}

const LEASE_PREFIX = 'weir-controller-';
/** A Lease is renewed every 2 s, by a clock that may differ from ours. */
const LEASE_GRACE_MS = 30_000;

export function controllerLeader({ leases, fleet, now }: Facts): CheckResult {
  if (leases.kind === 'unknown') return notChecked(leases);
  const name = `${LEASE_PREFIX}${fleet}`;
  const live = leases.value.filter((lease) => lease.name.startsWith(LEASE_PREFIX) && isLeaseHeld(lease, now));
  const own = leases.value.filter((lease) => lease.name === name);
  const leading = live.filter((lease) => lease.name === name);
  if (own.length === 0) {
    const others = live.map((lease) => lease.name.slice(LEASE_PREFIX.length));
    const hint = others.length === 0 ? '' : ` (there is one of fleet ${joinList(others)}: --fleet)`;
    return error(`no controller has ever led: there is no Lease ${name}${hint}; start one, and look at its log`);
  }
  if (leading.length === 0)
    return error(`no controller leads: ${joinList(own.map((lease) => idleLeaseText(lease, now)))}; ${CONTROLLER_HINT}`);
  if (leading.length > 1)
    return error(`more than one leads: ${joinList(leading.map(leasePath))}; a fleet has one namespace of its Lease`);
  const beside = live.filter((lease) => lease.name !== name).map((lease) => lease.name.slice(LEASE_PREFIX.length));
  const others =
    beside.length === 0 ? '' : `; beside it fleet ${joinList(beside)}, which has a class and nodes of its own`;
  return ok(`${joinList(leading.map((lease) => `${lease.holder} leads`))}${others}`);
}

const CONTROLLER_HINT = 'look at the pods and the log of the controller';

function isLeaseHeld({ holder, renewedAt, durationMs }: LeaseFact, now: number): boolean {
  return holder !== null && renewedAt !== null && now - renewedAt < durationMs + LEASE_GRACE_MS;
}

function idleLeaseText(lease: LeaseFact, now: number): string {
  if (lease.holder === null || lease.renewedAt === null) return `Lease ${leasePath(lease)} is held by nobody`;
  return `${lease.holder} has not renewed Lease ${leasePath(lease)} for ${Math.round((now - lease.renewedAt) / 1_000)} s`;
}

function leasePath({ namespace, name }: LeaseFact): string {
  return `${namespace}/${name}`;
}

function verbFor(items: readonly unknown[], one: string, several: string): string {
  return items.length === 1 ? one : several;
}

const MIN_REDIS_MAJOR = 7;

/** Also stands for a Redis that does not answer. */
export function redisReachable({ redis }: Facts): CheckResult {
  if (redis.kind === 'unknown') {
    return redis.cause === 'failed' ? error(`not checked: ${redis.message}`) : notChecked(redis);
  }
  const { role, isLoading } = redis.value;
  if (role === 'replica') return error('is a replica, which takes no writes; point the Redis URL at the primary');
  if (isLoading) return warning('is still loading its data; Weir waits for it');
  return ok('answers, as a primary');
}

export function redisVersion({ redis }: Facts): CheckResult {
  if (redis.kind === 'unknown') return notChecked(REDIS_UNAVAILABLE);
  const { version } = redis.value;
  if (version !== undefined && Number.parseInt(version, 10) >= MIN_REDIS_MAJOR)
    return ok(`${version} is ${MIN_REDIS_MAJOR}.0 or later`);
  return error(
    `is version ${version ?? 'unknown'}; Weir needs ${MIN_REDIS_MAJOR}.0 or later and refuses to start with this one`,
  );
}

export function redisEviction({ redis }: Facts): CheckResult {
  if (redis.kind === 'unknown') return notChecked(REDIS_UNAVAILABLE);
  switch (redis.value.evictionPolicy) {
    case 'noeviction':
      return ok('maxmemory-policy is noeviction');
    case undefined:
      return warning('does not say its maxmemory-policy; make sure that it is noeviction');
    default:
      return error(
        `has maxmemory-policy ${redis.value.evictionPolicy}, which silently drops what Weir has stored; set it to noeviction`,
      );
  }
}

const APPENDONLY_HINT = 'set appendonly yes';

export function redisPersistence({ redis }: Facts): CheckResult {
  if (redis.kind === 'unknown') return notChecked(REDIS_UNAVAILABLE);
  const { appendOnly, snapshots, isFailingToPersist } = redis.value;
  if (isFailingToPersist) return error('could not write to its disk the last time; look at the disk and at its log');
  if (appendOnly) return ok('appendonly is yes: what was counted survives a restart');
  if (snapshots === true) {
    return warning(
      `writes snapshots only, so a restart brings back an older state, and usage counted since is lost; ${APPENDONLY_HINT}`,
    );
  }
  const unseen = snapshots === undefined ? ', and does not let us see whether it writes snapshots' : ', nor snapshots';
  return warning(
    `keeps no log${unseen}, so a restart may lose series and the last minutes of usage; ${APPENDONLY_HINT}`,
  );
}
