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

/**
 * What this version of Weir refuses, in its own words: a Service; or all of them, when limits were asked for and one is not
 * enforced.
 */
export async function lacksOf(
  console: string,
  options: { readonly limited: boolean },
): Promise<Partial<Record<BackendName, string>>> {
  const [services, problems] = await Promise.all([
    read<Items<ServiceItem>>(new URL('api/v1/services', console)),
    read<Items<ProblemItem>>(new URL('api/v1/problems', console)),
  ]);
  return lacksFor(services.items, problems.items, options);
}

export function lacksFor(
  services: readonly ServiceItem[],
  problems: readonly ProblemItem[],
  { limited }: { readonly limited: boolean },
): Partial<Record<BackendName, string>> {
  const notKept = limited ? problems.find(({ subject }) => subject.includes('TenantPolicy')) : undefined;
  return Object.fromEntries(
    backendNames.flatMap((name) => {
      const service = services.find((each) => each.name === name);
      const refusal = service?.state === 'Refused' ? service.message : undefined;
      const reason = service === undefined ? 'Weir does not know the Service' : (refusal ?? notKept?.message);
      return reason === undefined ? [] : [[name, withoutPlace(reason)]];
    }),
  );
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
