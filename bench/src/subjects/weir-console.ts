import { setTimeout } from 'node:timers/promises';
import { type Ledger, perBackend, type TrafficTotals } from './subject.ts';

type Items<T> = { readonly items: readonly T[] };
type UsageItem = { readonly services: readonly ({ readonly name: string } & TrafficTotals)[] };

/** Reads the ledger from the API of the console. A backend's traffic is the sum of its Services. */
export async function readLedger<Backend extends string>(
  console: string,
  backends: readonly Backend[],
): Promise<Ledger<Backend>> {
  const { items } = await requestJson<Items<UsageItem>>(new URL('api/v1/usage', console));
  const services = items.flatMap((item) => item.services);
  return perBackend(backends, (backend) => sumOf(services.filter(({ name }) => isServiceOf(backend, name))));
}

function sumOf(services: readonly TrafficTotals[]): TrafficTotals {
  const sum = { receivedBytes: 0, sentBytes: 0, connections: 0 };
  for (const { receivedBytes, sentBytes, connections } of services) {
    sum.receivedBytes += receivedBytes;
    sum.sentBytes += sentBytes;
    sum.connections += connections;
  }
  return sum;
}

/** Whether a Service relays to a backend: its name is the name of the backend, or this name and a number, for example `routes-7`. */
function isServiceOf(backend: string, service: string): boolean {
  return service === backend || (service.startsWith(`${backend}-`) && /^\d+$/.test(service.slice(backend.length + 1)));
}

export type ServiceItem = { readonly name: string; readonly state: string; readonly message: string };
export type ProblemItem = { readonly subject: string; readonly message: string };

export type FeatureSupport<Backend extends string> = {
  /** Reasons why this version of Weir does not relay to a backend, by backend. */
  readonly unsupported: Readonly<Partial<Record<Backend, string>>>;
  /** Names of the limits that this version of Weir does not enforce. */
  readonly notEnforced: readonly string[];
};

/** The backends, and the names of the limits of their tenant. */
export type Features<Backend extends string> = {
  readonly backends: readonly Backend[];
  readonly limitNames: readonly string[];
};

/** Reads from the API of the console which backends and limits this version of Weir supports. */
export async function readFeatureSupport<Backend extends string>(
  console: string,
  features: Features<Backend>,
): Promise<FeatureSupport<Backend>> {
  const [services, problems] = await Promise.all([
    requestJson<Items<ServiceItem>>(new URL('api/v1/services', console)),
    requestJson<Items<ProblemItem>>(new URL('api/v1/problems', console)),
  ]);
  return featureSupportFor(services.items, problems.items, features);
}

/** Returns which backends are unsupported: a backend whose Service is missing or refused, or all if none of `limitNames` is enforced. */
export function featureSupportFor<Backend extends string>(
  services: readonly ServiceItem[],
  problems: readonly ProblemItem[],
  { backends, limitNames }: Features<Backend>,
): FeatureSupport<Backend> {
  const problemOf = (name: string): ProblemItem | undefined =>
    problems.find(({ message }) => message.includes(`limits.${name} is not enforced`));
  const notEnforced = limitNames.filter((name) => problemOf(name) !== undefined);
  const hasNoLimits = limitNames.length > 0 && notEnforced.length === limitNames.length;
  const unsupported = backends.flatMap((name) => {
    const own = services.filter((service) => isServiceOf(name, service.name));
    const refused = own.find(({ state }) => state === 'Refused');
    const refusal = refused === undefined ? undefined : withoutSourceLocation(refused.message);
    const limits = hasNoLimits ? `this version enforces none of the limits (${notEnforced.join(', ')})` : undefined;
    const reason = own.length === 0 ? 'Weir does not know the Service' : (refusal ?? limits);
    return reason === undefined ? [] : [[name, reason] as const];
  });
  return { unsupported: Object.fromEntries(unsupported) as FeatureSupport<Backend>['unsupported'], notEnforced };
}

/** Removes the path of the temporary manifest from the end of a message, because the path is meaningless in a result. */
function withoutSourceLocation(message: string): string {
  return message.replace(/ \(\/[^)]*\)$/, '');
}

async function requestJson<T>(url: URL): Promise<T> {
  const response = await fetch(url, { signal: AbortSignal.timeout(5_000) });
  if (!response.ok) throw new Error(`${url} answered ${response.status}: ${await response.text()}`);
  return (await response.json()) as T;
}

const STABLE_INTERVAL_MS = 1_500;

/** Reads until two consecutive readings are equal. Waits more than a second before each, because the ledger is written every second. */
export async function readUntilStable<T>(read: () => Promise<T>): Promise<T> {
  for (let last = await read(), attempt = 0; attempt < 10; attempt++) {
    await setTimeout(STABLE_INTERVAL_MS);
    const before = last;
    last = await read();
    if (JSON.stringify(before) === JSON.stringify(last)) return last;
  }
  throw new Error('the ledger keeps changing without traffic');
}
