import type { Facts, LeaseFact } from '../facts.ts';
import { error, ok, unchecked, type Verdict, warning } from '../finding.ts';
import { listed } from '../listed.ts';

const OLDEST_MINOR = 30;

/** Also stands for an API server that does not answer. */
export function kubernetesVersion({ server }: Facts): Verdict {
  if (server.kind === 'unknown') {
    return server.cause === 'failed' ? error(`not checked: ${server.why}`) : unchecked(server);
  }
  const { version } = server.value;
  const [, major, minor] = /^v?(\d+)\.(\d+)/.exec(version) ?? [];
  if (major === undefined || minor === undefined) return warning(`not checked: its version is "${version}"`);
  const isNewEnough = Number(major) > 1 || (Number(major) === 1 && Number(minor) >= OLDEST_MINOR);
  return isNewEnough
    ? ok(`${version} is 1.${OLDEST_MINOR} or later`)
    : error(
        `${version} does not know ipMode: Proxy, so kube-proxy catches the published addresses, past limits and accounting; Weir needs 1.${OLDEST_MINOR} or later`,
      );
}

const RESOURCES = ['tenantpolicies', 'suspensions', 'tenantusages'] as const;

export function customResources({ customResources: served }: Facts): Verdict {
  if (served.kind === 'unknown') return unchecked(served);
  const missing = RESOURCES.filter((name) => !served.value.includes(name));
  return missing.length === 0
    ? ok(`${RESOURCES.join(', ')} are served`)
    : error(`${missing.join(', ')} ${verb(missing, 'is', 'are')} not served; ${INSTALL}`);
}

const INSTALL =
  'install the custom resources of Weir: helm upgrade with crds.install, or kubectl apply -f charts/weir-crds/definitions (if they are there: kubectl get crd shows why not)';

/** An endpoint at a cluster IP leads to another tenant's Service. */
export function serviceRanges({ serviceRanges: told, serviceCidrs }: Facts): Verdict {
  if (serviceCidrs !== undefined)
    return ok(`${serviceCidrs} (WEIR_SERVICE_CIDRS)${also(told)}; no endpoint may be there`);
  if (told.kind === 'unknown') return unchecked(told);
  if (told.value.length > 0) return ok(`${listed(told.value)}; no endpoint may be there`);
  return warning(
    'the API server does not tell their ranges (ServiceCIDR, from Kubernetes 1.33), so where allowedEndpointCIDRs are wide only those that a Service has now are refused as endpoints; set WEIR_SERVICE_CIDRS of the controller (it is --service-cluster-ip-range of the API server), and for this check, too',
  );
}

function also(told: Facts['serviceRanges']): string {
  return told.kind === 'known' && told.value.length > 0 ? `, and ${listed(told.value)}` : '';
}

const LEASE_PREFIX = 'weir-controller-';
/** A Lease is renewed every 2 s, by a clock that may differ from ours. */
const LATE_MS = 30_000;

export function controllerLeader({ leases, fleet, now }: Facts): Verdict {
  if (leases.kind === 'unknown') return unchecked(leases);
  const name = `${LEASE_PREFIX}${fleet}`;
  const live = leases.value.filter((lease) => lease.name.startsWith(LEASE_PREFIX) && isHeld(lease, now));
  const own = leases.value.filter((lease) => lease.name === name);
  const leading = live.filter((lease) => lease.name === name);
  if (own.length === 0) {
    const others = live.map((lease) => lease.name.slice(LEASE_PREFIX.length));
    const hint = others.length === 0 ? '' : ` (there is one of fleet ${listed(others)}: --fleet)`;
    return error(`no controller has ever led: there is no Lease ${name}${hint}; start one, and look at its log`);
  }
  if (leading.length === 0)
    return error(`no controller leads: ${listed(own.map((lease) => idle(lease, now)))}; ${LOOK}`);
  if (leading.length > 1)
    return error(`more than one leads: ${listed(leading.map(place))}; a fleet has one namespace of its Lease`);
  const beside = live.filter((lease) => lease.name !== name).map((lease) => lease.name.slice(LEASE_PREFIX.length));
  const others =
    beside.length === 0 ? '' : `; beside it fleet ${listed(beside)}, which has a class and nodes of its own`;
  return ok(`${listed(leading.map((lease) => `${lease.holder} leads`))}${others}`);
}

const LOOK = 'look at the pods and the log of the controller';

function isHeld({ holder, renewedAt, durationMs }: LeaseFact, now: number): boolean {
  return holder !== null && renewedAt !== null && now - renewedAt < durationMs + LATE_MS;
}

function idle(lease: LeaseFact, now: number): string {
  if (lease.holder === null || lease.renewedAt === null) return `Lease ${place(lease)} is held by nobody`;
  return `${lease.holder} has not renewed Lease ${place(lease)} for ${Math.round((now - lease.renewedAt) / 1_000)} s`;
}

function place({ namespace, name }: LeaseFact): string {
  return `${namespace}/${name}`;
}

function verb(items: readonly unknown[], one: string, several: string): string {
  return items.length === 1 ? one : several;
}
