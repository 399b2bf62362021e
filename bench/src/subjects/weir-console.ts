import { type BackendName, backendNames, type Ledger, type Metered, perBackend } from './subject.ts';

type Items<T> = { readonly items: readonly T[] };

type UsageItem = { readonly services: readonly ({ readonly name: string } & Metered)[] };

/** What the ledger has by now; the Services are named by their backends. */
export async function readLedger(console: string): Promise<Ledger> {
  const { items } = await read<Items<UsageItem>>(new URL('api/v1/usage', console));
  const services = items.flatMap((item) => item.services);
  return perBackend(
    (name) => services.find((service) => service.name === name) ?? { receivedBytes: 0, sentBytes: 0, connections: 0 },
  );
}

export type ServiceItem = { readonly name: string; readonly state: string; readonly message: string };
export type ProblemItem = { readonly subject: string; readonly message: string };

export type Verdict = {
  /** What it refuses, in its own words. */
  readonly lacks: Readonly<Partial<Record<BackendName, string>>>;
  /** Limits that were asked for and that it does not keep. */
  readonly notEnforced: readonly string[];
};

/** What this version of Weir makes of the manifests. */
export async function readVerdict(console: string, limitNames: readonly string[]): Promise<Verdict> {
  const [services, problems] = await Promise.all([
    read<Items<ServiceItem>>(new URL('api/v1/services', console)),
    read<Items<ProblemItem>>(new URL('api/v1/problems', console)),
  ]);
  return verdictFor(services.items, problems.items, limitNames);
}

/** A Service that is refused lacks; and all do, when of the limits that were asked for none is enforced. */
export function verdictFor(
  services: readonly ServiceItem[],
  problems: readonly ProblemItem[],
  limitNames: readonly string[],
): Verdict {
  const about = (name: string): ProblemItem | undefined =>
    problems.find(({ message }) => message.includes(`limits.${name} is not enforced`));
  const notEnforced = limitNames.filter((name) => about(name) !== undefined);
  const isWithout = limitNames.length > 0 && notEnforced.length === limitNames.length;
  const lacks = backendNames.flatMap((name) => {
    const service = services.find((each) => each.name === name);
    const refusal = service?.state === 'Refused' ? withoutPlace(service.message) : undefined;
    const limits = isWithout ? `of its limits this version enforces none (${notEnforced.join(', ')})` : undefined;
    const reason = service === undefined ? 'Weir does not know the Service' : (refusal ?? limits);
    return reason === undefined ? [] : [[name, reason] as const];
  });
  return { lacks: Object.fromEntries(lacks), notEnforced };
}

/** The file is a temporary one of ours. */
function withoutPlace(message: string): string {
  return message.replace(/ \(\/[^)]*\)$/, '');
}

async function read<T>(url: URL): Promise<T> {
  const response = await fetch(url, { signal: AbortSignal.timeout(5_000) });
  if (!response.ok) throw new Error(`${url} answered ${response.status}: ${await response.text()}`);
  return (await response.json()) as T;
}
