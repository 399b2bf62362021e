import { setTimeout } from 'node:timers/promises';
import { BACKEND_NAMES, type BackendName, type Ledger, perBackend, type TrafficTotals } from './subject.ts';

type Items<T> = { readonly items: readonly T[] };
type UsageItem = { readonly services: readonly ({ readonly name: string } & TrafficTotals)[] };

/** What the ledger has by now; the Services are named by their backends. */
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
  /** What it refuses, in its own words. */
  readonly unsupported: Readonly<Partial<Record<BackendName, string>>>;
  /** Limits that were asked for and that it does not keep. */
  readonly notEnforced: readonly string[];
};

/** What this version of Weir makes of the manifests. */
export async function readFeatureSupport(console: string, limitNames: readonly string[]): Promise<FeatureSupport> {
  const [services, problems] = await Promise.all([
    requestJson<Items<ServiceItem>>(new URL('api/v1/services', console)),
    requestJson<Items<ProblemItem>>(new URL('api/v1/problems', console)),
  ]);
  return featureSupportFor(services.items, problems.items, limitNames);
}

/** A Service that is refused lacks; and all do, when of the limits that were asked for none is enforced. */
export function featureSupportFor(
  services: readonly ServiceItem[],
  problems: readonly ProblemItem[],
  limitNames: readonly string[],
): FeatureSupport {
  const about = (name: string): ProblemItem | undefined =>
    problems.find(({ message }) => message.includes(`limits.${name} is not enforced`));
  const notEnforced = limitNames.filter((name) => about(name) !== undefined);
  const isWithout = limitNames.length > 0 && notEnforced.length === limitNames.length;
  const lacks = BACKEND_NAMES.flatMap((name) => {
    const service = services.find((each) => each.name === name);
    const refusal = service?.state === 'Refused' ? withoutSourceLocation(service.message) : undefined;
    const limits = isWithout ? `of its limits this version enforces none (${notEnforced.join(', ')})` : undefined;
    const reason = service === undefined ? 'Weir does not know the Service' : (refusal ?? limits);
    return reason === undefined ? [] : [[name, reason] as const];
  });
  return { unsupported: Object.fromEntries(lacks), notEnforced };
}

/** The file is a temporary one of ours. */
function withoutSourceLocation(message: string): string {
  return message.replace(/ \(\/[^)]*\)$/, '');
}

async function requestJson<T>(url: URL): Promise<T> {
  const response = await fetch(url, { signal: AbortSignal.timeout(5_000) });
  if (!response.ok) throw new Error(`${url} answered ${response.status}: ${await response.text()}`);
  return (await response.json()) as T;
}

const STABLE_INTERVAL_MS = 1_500;

/** The ledger is written once a second: it has settled when two readings further apart than that are equal. */
export async function readUntilStable<T>(read: () => Promise<T>): Promise<T> {
  for (let last = await read(), attempt = 0; attempt < 10; attempt++) {
    await setTimeout(STABLE_INTERVAL_MS);
    const before = last;
    last = await read();
    if (JSON.stringify(before) === JSON.stringify(last)) return last;
  }
  throw new Error('the ledger goes on changing without traffic');
}
