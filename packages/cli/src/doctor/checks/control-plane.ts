import { joinList } from '../../output/amounts.ts';
import { type Facts, LEASE_PREFIX, type LeaseFact } from '../facts.ts';
import { type CheckResult, error, notChecked, ok, REDIS_UNAVAILABLE, warning } from '../finding.ts';

const MIN_KUBERNETES_MINOR = 30;

/** Checks the version of Kubernetes. This check also reports an unreachable API server. */
export function kubernetesVersion({ server }: Facts): CheckResult {
  if (server.kind === 'unknown') {
    return server.cause === 'failed' ? error(`not checked: ${server.message}`) : notChecked(server);
  }
  const { version } = server.value;
  const [, major, minor] = /^v?(\d+)\.(\d+)/.exec(version) ?? [];
  if (major === undefined || minor === undefined) return warning(`not checked: unknown version "${version}"`);
  const isNewEnough = Number(major) > 1 || (Number(major) === 1 && Number(minor) >= MIN_KUBERNETES_MINOR);
  return isNewEnough
    ? ok(`${version} is 1.${MIN_KUBERNETES_MINOR} or later`)
    : error(
        `${version} does not support ipMode: Proxy, so kube-proxy intercepts connections to the published addresses, and such connections bypass limits and accounting; upgrade to 1.${MIN_KUBERNETES_MINOR} or later`,
      );
}

const REQUIRED_RESOURCES = ['tenantpolicies', 'suspensions', 'tenantusages'] as const;

export function customResources({ customResources: served }: Facts): CheckResult {
  if (served.kind === 'unknown') return notChecked(served);
  const missing = REQUIRED_RESOURCES.filter((name) => !served.value.includes(name));
  return missing.length === 0
    ? ok(`${REQUIRED_RESOURCES.join(', ')} are served`)
    : error(`the API server does not serve ${missing.join(', ')}; ${INSTALL_HINT}`);
}

const INSTALL_HINT =
  "install Weir's custom resources: helm upgrade with crds.install, or kubectl apply -f charts/weir-crds/definitions (if the custom resources are installed, kubectl get crd shows why the API server does not serve them)";

/**
 * Checks that Weir knows the ranges of cluster IPs. Weir refuses endpoints in these ranges, because they would lead to another tenant's
 * Service.
 */
export function serviceRanges({ serviceRanges: published, serviceCidrs }: Facts): CheckResult {
  if (serviceCidrs !== undefined)
    return ok(`${serviceCidrs} (WEIR_SERVICE_CIDRS)${publishedRangesText(published)}; ${NO_ENDPOINT_RULE}`);
  if (published.kind === 'unknown') return notChecked(published);
  if (published.value.length > 0) return ok(`${joinList(published.value)}; ${NO_ENDPOINT_RULE}`);
  return warning(
    'the API server does not publish the ranges of cluster IPs (ServiceCIDR, from Kubernetes 1.33), so Weir cannot refuse endpoints in these ranges, except the cluster IPs of existing Services; set WEIR_SERVICE_CIDRS to the --service-cluster-ip-range of the API server, for the controller and for this command',
  );
}

const NO_ENDPOINT_RULE = 'Weir refuses endpoints in these ranges';

function publishedRangesText(published: Facts['serviceRanges']): string {
  return published.kind === 'known' && published.value.length > 0 ? `, and ${joinList(published.value)}` : '';
}

/** Extra time before a Lease counts as expired, because the holder's clock may differ from this machine's clock. */
const LEASE_GRACE_MS = 30_000;

export function controllerLeader({ leases, fleet, now }: Facts): CheckResult {
  if (leases.kind === 'unknown') return notChecked(leases);
  const name = `${LEASE_PREFIX}${fleet}`;
  const live = leases.value.filter((lease) => lease.name.startsWith(LEASE_PREFIX) && isLeaseHeld(lease, now));
  const leasesOfFleet = leases.value.filter((lease) => lease.name === name);
  const leading = live.filter((lease) => lease.name === name);
  if (leasesOfFleet.length === 0) {
    const otherFleets = live.map((lease) => lease.name.slice(LEASE_PREFIX.length));
    const hint =
      otherFleets.length === 0 ? '' : ` (fleets with a Lease: ${joinList(otherFleets)}; choose one with --fleet)`;
    return error(
      `no controller of this fleet has ever become the leader: Lease ${name} does not exist${hint}; start a controller, and check its log`,
    );
  }
  if (leading.length === 0)
    return error(
      `no controller leads: ${joinList(leasesOfFleet.map((lease) => idleLeaseText(lease, now)))}; ${CONTROLLER_HINT}`,
    );
  if (leading.length > 1)
    return error(
      `${leading.length} controllers lead, each with a Lease of its own (${joinList(leading.map(leasePath))}); run all controllers of a fleet in one namespace`,
    );
  const otherFleets = live.filter((lease) => lease.name !== name).map((lease) => lease.name.slice(LEASE_PREFIX.length));
  const otherFleetsText =
    otherFleets.length === 0
      ? ''
      : `; the cluster also has other fleets, each with its own class and nodes: ${joinList(otherFleets)}`;
  return ok(`${joinList(leading.map((lease) => `${lease.holder} leads`))}${otherFleetsText}`);
}

const CONTROLLER_HINT = "check the controller's pods and log";

function isLeaseHeld({ holder, renewedAt, durationMs }: LeaseFact, now: number): boolean {
  return holder !== null && renewedAt !== null && now - renewedAt < durationMs + LEASE_GRACE_MS;
}

function idleLeaseText(lease: LeaseFact, now: number): string {
  if (lease.holder === null || lease.renewedAt === null) return `Lease ${leasePath(lease)} has no holder`;
  return `${lease.holder} has not renewed Lease ${leasePath(lease)} for ${Math.round((now - lease.renewedAt) / 1_000)} s`;
}

function leasePath({ namespace, name }: LeaseFact): string {
  return `${namespace}/${name}`;
}

const MIN_REDIS_MAJOR = 7;

/** Checks that Redis is a primary with loaded data. This check also reports an unreachable Redis. */
export function redisReachable({ redis }: Facts): CheckResult {
  if (redis.kind === 'unknown') {
    return redis.cause === 'failed' ? error(`not checked: ${redis.message}`) : notChecked(redis);
  }
  const { role, isLoading } = redis.value;
  if (role === 'replica')
    return error('the server is a replica, which accepts no writes; set the Redis URL to the primary');
  if (isLoading) return warning('Redis is still loading its data; Weir waits until Redis has loaded it');
  return ok('Redis answers as a primary');
}

export function redisVersion({ redis }: Facts): CheckResult {
  if (redis.kind === 'unknown') return notChecked(REDIS_UNAVAILABLE);
  const { version } = redis.value;
  if (version !== undefined && Number.parseInt(version, 10) >= MIN_REDIS_MAJOR)
    return ok(`${version} is ${MIN_REDIS_MAJOR}.0 or later`);
  return error(
    `the version is ${version ?? 'unknown'}, but Weir starts only with ${MIN_REDIS_MAJOR}.0 or later; upgrade Redis`,
  );
}

export function redisEviction({ redis }: Facts): CheckResult {
  if (redis.kind === 'unknown') return notChecked(REDIS_UNAVAILABLE);
  switch (redis.value.evictionPolicy) {
    case 'noeviction':
      return ok('maxmemory-policy is noeviction');
    case undefined:
      return warning('maxmemory-policy cannot be read; make sure that it is noeviction');
    default:
      return error(
        `maxmemory-policy is ${redis.value.evictionPolicy}, which silently deletes Weir's data; set it to noeviction`,
      );
  }
}

const MEBIBYTE = 2 ** 20;
/** The check warns above this share of maxmemory, because a rewrite of the append-only file and the ledger need some space. */
const MAX_MEMORY_SHARE = 0.8;

export function redisMemory({ redis }: Facts): CheckResult {
  if (redis.kind === 'unknown') return notChecked(REDIS_UNAVAILABLE);
  const { used, max } = redis.value.memory;
  const usedText = `Redis uses ${Math.ceil(used / MEBIBYTE)} MiB`;
  if (max === 0) return ok(`${usedText} and has no maxmemory`);
  const text = `${usedText} of its maxmemory of ${Math.round(max / MEBIBYTE)} MiB`;
  if (used >= max)
    return error(`${text}, so changes and usage wait, while traffic and cut-offs continue; raise maxmemory`);
  return used > MAX_MEMORY_SHARE * max ? warning(`${text}; raise maxmemory before Redis is full`) : ok(text);
}

const APPENDONLY_HINT = 'set appendonly yes';

export function redisPersistence({ redis }: Facts): CheckResult {
  if (redis.kind === 'unknown') return notChecked(REDIS_UNAVAILABLE);
  const { appendOnly, snapshots, isFailingToPersist } = redis.value;
  if (isFailingToPersist) return error('the last write to disk failed; check the disk and the log of Redis');
  if (appendOnly) return ok('appendonly is yes, so usage survives a restart');
  if (snapshots === true) {
    return warning(
      `Redis writes snapshots only, so a restart loses the usage since the last snapshot; ${APPENDONLY_HINT}`,
    );
  }
  const missingText =
    snapshots === undefined
      ? 'no append-only log, and perhaps no snapshots'
      : 'neither an append-only log nor snapshots';
  return warning(
    `Redis writes ${missingText}, so a restart may lose time series and the last minutes of usage; ${APPENDONLY_HINT}`,
  );
}
