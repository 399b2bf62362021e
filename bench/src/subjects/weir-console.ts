import { setTimeout } from 'node:timers/promises';
import { BACKEND_NAMES, type BackendName, type Ledger, perBackend, type TrafficTotals } from './subject.ts';

type Items<T> = { readonly items: readonly T[] };
type UsageItem = { readonly services: readonly ({ readonly name: string } & TrafficTotals)[] };

/** Reads the ledger; each Service has the name of its backend. */
export async function readLedger(console: string): Promise<Ledger> {
  const { items } = await requestJson<Items<UsageItem>>(new URL('api/v1/usage', console));
  const services = items.flatMap((item) => item.services);
  return perBackend(
    (name) => services.find((service) => service.name === name) ?? { receivedBytes: 0, sentBytes: 0, connections: 0 },
  );
}

export type ServiceItem = { readonly name: string; readonly state: string; readonly message: string };
export type ProblemItem = { readonly subject: string; readonly message: string };

export type FeatureSupport = {
  /** Backends whose Service has an error, with the message of the Service. */
  readonly unsupported: Readonly<Partial<Record<BackendName, string>>>;
  /** Limits of the manifests that this version does not enforce. */
  readonly notEnforced: readonly string[];
};

/** Reads what this version of Weir supports of the manifests. */
export async function readFeatureSupport(console: string, limitNames: readonly string[]): Promise<FeatureSupport> {
  const [services, problems] = await Promise.all([
    requestJson<Items<ServiceItem>>(new URL('api/v1/services', console)),
    requestJson<Items<ProblemItem>>(new URL('api/v1/problems', console)),
  ]);
  return featureSupportFor(services.items, problems.items, limitNames);
}

/** A refused Service is unsupported; all Services are unsupported if no limit is enforced. */
export function featureSupportFor(
  services: readonly ServiceItem[],
  problems: readonly ProblemItem[],
  limitNames: readonly string[],
): FeatureSupport {
  const problemOf = (name: string): ProblemItem | undefined =>
    problems.find(({ message }) => message.includes(`limits.${name} is not enforced`));
  const notEnforced = limitNames.filter((name) => problemOf(name) !== undefined);
  const hasNoLimits = limitNames.length > 0 && notEnforced.length === limitNames.length;
  const unsupported = BACKEND_NAMES.flatMap((name) => {
    const service = services.find((each) => each.name === name);
    const refusal = service?.state === 'Refused' ? withoutSourceLocation(service.message) : undefined;
    const limits = hasNoLimits ? `this version enforces none of the limits (${notEnforced.join(', ')})` : undefined;
    const reason = service === undefined ? 'Weir does not know the Service' : (refusal ?? limits);
    return reason === undefined ? [] : [[name, reason] as const];
  });
  return { unsupported: Object.fromEntries(unsupported), notEnforced };
}

/** Messages name the temporary file of the manifest, which means nothing in a result. */
function withoutSourceLocation(message: string): string {
  return message.replace(/ \(\/[^)]*\)$/, '');
}

async function requestJson<T>(url: URL): Promise<T> {
  const response = await fetch(url, { signal: AbortSignal.timeout(5_000) });
  if (!response.ok) throw new Error(`${url} answered ${response.status}: ${await response.text()}`);
  return (await response.json()) as T;
}

const STABLE_INTERVAL_MS = 1_500;

/** The ledger is written once a second: it is stable if two readings with a longer interval are equal. */
export async function readUntilStable<T>(read: () => Promise<T>): Promise<T> {
  for (let last = await read(), attempt = 0; attempt < 10; attempt++) {
    await setTimeout(STABLE_INTERVAL_MS);
    const before = last;
    last = await read();
    if (JSON.stringify(before) === JSON.stringify(last)) return last;
  }
  throw new Error('the ledger keeps changing without traffic');
}
