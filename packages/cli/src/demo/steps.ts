import type { FleetProblem, LiveFrame, Rate, SuspensionItem, UsageItem } from '@weir/console';
import type { ServiceView } from '@weir/model';
import { systemClock, wait } from '@weir/runtime';
import type { ConsoleClient } from '../client/console-client.ts';
import { liveFrames } from '../client/live-frames.ts';
import type { ItemList } from '../client/responses.ts';
import { bitRateText, bytesText, countText, pluralize } from '../output/amounts.ts';
import { type Colourize, colourizeFor } from '../output/ansi.ts';
import { sortedFrame, topText } from '../output/top-text.ts';
import { pollUntil } from '../standalone/waiting.ts';
import type { Terminal } from '../terminal.ts';
import type { Backends } from './backends.ts';
import type { DemoClients } from './demo-clients.ts';
import type { TrafficCount } from './traffic.ts';

// The steps of the demo, in order. Each step reads the console's API and compares the response with the clients' own counts.

export interface DemoContext {
  readonly client: ConsoleClient;
  readonly report: DemoReport;
  readonly signal: AbortSignal;
}

const REFUSED_SERVICE = 'shop/web-preview';

/**
 * Whether the demo hides a problem, because `showAddresses` reports the problem later. An earlier error message would look like a failure
 * of the demo.
 */
export function isExpectedProblem({ code, subject }: Pick<FleetProblem, 'code' | 'subject'>): boolean {
  return code === 'QuotaExceeded' && subject === `Service ${REFUSED_SERVICE}`;
}

/** Checks that every Service has two addresses, except the Service that exceeds the quota. */
export async function showAddresses({ client, report }: DemoContext): Promise<readonly ServiceView[]> {
  report.title('The manifests are applied: four Services get addresses, one is refused with a reason');
  const { items } = await client.get<ItemList<ServiceView>>('/api/v1/services');
  for (const service of items) {
    const name = `${service.namespace}/${service.name}`;
    if (name === REFUSED_SERVICE) {
      const isRefused = service.state === 'Refused' && service.reason === 'QuotaExceeded';
      report.check(`${name} is refused with a reason`, isRefused, `${service.reason}: ${service.message}`);
    } else {
      const isServed = service.state === 'Programmed' && service.addresses.length === 2;
      report.check(`${name} is served on two nodes`, isServed, service.addresses.join(', ') || service.message);
    }
  }
  report.check('three tenants have five Services', items.length === 5, pluralize(items.length, 'Service'));
  return items;
}

/** Number of live frames to wait for. A rate is a mean over three seconds, so the first frames cover less than three seconds of traffic. */
const FRAMES_TO_WAIT = 4;

export async function showBandwidth({ client, report, signal }: DemoContext): Promise<void> {
  report.title('Traffic: bandwidth and HTTP requests of each tenant, live');
  const frame = await frameAfter(FRAMES_TO_WAIT, { client, signal });
  report.info(topText(sortedFrame(frame, { sort: 'in' }), false).trimEnd());
  const rateOf = (name: string): number => {
    const tenant = frame.tenants.find((each) => each.name === name);
    return (tenant?.inBitsPerSecond ?? 0) + (tenant?.outBitsPerSecond ?? 0);
  };
  const suspended = await suspendedTenants(client);
  for (const name of ['shop', 'game']) {
    if (suspended.has(name)) report.info(suspendedText(name));
    else report.check(`the bandwidth of ${name} is visible`, rateOf(name) > 0, bitRateText(rateOf(name)));
  }
  if (!suspended.has('shop')) checkRequests(report, frame);
  const isMost = rateOf('uploader') > rateOf('shop') + rateOf('game');
  if (suspended.has('uploader')) report.info(suspendedText('uploader'));
  else
    report.check(
      'the uploader uses more bandwidth than shop and game together',
      isMost,
      bitRateText(rateOf('uploader')),
    );
}

/** Checks that requests are counted for the Service to which their path leads, and that only the API has server errors. */
function checkRequests(report: DemoReport, frame: LiveFrame): void {
  const rateOf = (name: string): Rate | undefined =>
    frame.services.find((service) => service.namespace === 'shop' && service.name === name);
  const [web, api] = [rateOf('web'), rateOf('api')];
  const requests = [web, api].map((rate) => rate?.requestsPerSecond ?? 0);
  const errors = [web, api].map((rate) => rate?.serverErrorsPerSecond ?? 0);
  report.check(
    'requests for one host reach two Services of the shop by path, and only the API answers some of them with 5xx',
    requests.every((count) => count > 0) && errors[0] === 0 && (errors[1] ?? 0) > 0,
    `web ${countText(requests[0] ?? 0)} requests/s, api ${countText(requests[1] ?? 0)} requests/s`,
  );
}

/** Returns the tenants with a Service that somebody has suspended by hand. The checks of these tenants would fail. */
async function suspendedTenants(client: ConsoleClient): Promise<ReadonlySet<string | null>> {
  const { items } = await client.get<ItemList<ServiceView>>('/api/v1/services');
  return new Set(items.filter(({ state }) => state === 'Suspended').map(({ tenant }) => tenant));
}

function suspendedText(tenant: string): string {
  return `${tenant} is suspended by hand, so the demo does not check it until you resume it`;
}

async function frameAfter(count: number, { client, signal }: Omit<DemoContext, 'report'>): Promise<LiveFrame> {
  const done = new AbortController();
  let frames = 0;
  try {
    for await (const frame of liveFrames(client, AbortSignal.any([signal, done.signal]))) {
      frames += 1;
      if (frames >= count) return frame;
    }
  } finally {
    done.abort();
  }
  throw new Error('the console stopped sending rates');
}

const SUSPENSION_MESSAGE = 'Your uploads fill the shared link; call the platform team.';
const MAX_TERMINATION_MS = 1_000;
const SUSPENSION_DURATION_MS = 3_000;

/** Suspends the uploader and then resumes it. Checks that the suspension does not affect the other tenants. */
export async function showSuspension({ client, report, signal }: DemoContext, clients: DemoClients): Promise<void> {
  report.title('An operator cuts off the uploader: weir suspend uploader --message …');
  const { shop, game, uploader } = clients;
  const suspended = await suspendedTenants(client);
  if (suspended.has('uploader')) return report.info(suspendedText('uploader'));
  const before = { shop: shop.count(), game: game.count(), open: uploader.openConnections() };
  const connectionsClosed = uploader.allClosed();
  const startedAt = systemClock.monotonic();
  const target = { type: 'Tenant', tenant: 'uploader' };
  const { name } = await client.post<SuspensionItem>('/api/v1/suspensions', { target, message: SUSPENSION_MESSAGE });
  const isTerminated = await Promise.race([
    connectionsClosed.then(() => true),
    wait(systemClock, 5_000, signal).then(() => false),
  ]);
  const tookMs = systemClock.monotonic() - startedAt;
  report.check(
    `the ${before.open} open connections of the uploader are reset in less than a second`,
    isTerminated && before.open > 0 && tookMs < MAX_TERMINATION_MS,
    `${Math.round(tookMs)} ms`,
  );
  const refusedBefore = uploader.refusedConnections();
  await wait(systemClock, SUSPENSION_DURATION_MS, signal);
  const refused = uploader.refusedConnections() - refusedBefore;
  report.check(
    'new connections of the uploader are refused',
    refused > 0 && uploader.openConnections() === 0,
    `${refused} attempts`,
  );
  const { items } = await client.get<ItemList<ServiceView>>('/api/v1/services');
  const intake = items.find((service) => service.namespace === 'uploader');
  const showsMessage = intake?.state === 'Suspended' && intake.message.startsWith(SUSPENSION_MESSAGE);
  report.check(
    'the Service of the uploader shows the message and keeps its addresses',
    showsMessage && intake.addresses.length > 0,
    `${intake?.state}: ${intake?.message}`,
  );
  const suspendedSince = await suspendedTenants(client);
  const others = [
    { name: 'shop', before: before.shop, after: shop.count() },
    { name: 'game', before: before.game, after: game.count() },
  ];
  for (const other of others) {
    if (suspended.has(other.name) || suspendedSince.has(other.name)) report.info(suspendedText(other.name));
    else checkUndisturbed(report, other);
  }

  report.title('The operator ends the cut-off: weir resume uploader');
  await client.delete(`/api/v1/suspensions/${name}`);
  const isBack = await pollUntil(() => uploader.openConnections() > 0, { withinMs: 3_000, signal });
  report.check('the uploader is served again', isBack, `${uploader.openConnections()} connections`);
}

interface TenantTraffic {
  readonly name: string;
  readonly before: TrafficCount;
  readonly after: TrafficCount;
}

function checkUndisturbed(report: DemoReport, { name, before, after }: TenantTraffic): void {
  const newBytes = after.receivedBytes - before.receivedBytes;
  const hasFailed = after.failures.count > before.failures.count;
  const isUndisturbed = !hasFailed && newBytes > 0;
  const details = hasFailed
    ? after.failures.last
    : `${bytesText(newBytes)} received during the cut-off, every request was answered`;
  report.check(`${name} is not affected`, isUndisturbed, details);
}

/** Compares the usage of each tenant with the counts of its clients, after all clients have closed their connections. */
export async function showUsage(
  { client, report, signal }: DemoContext,
  clients: DemoClients,
  backends: Backends,
): Promise<void> {
  report.title("Usage: weir usage shows the same numbers as the clients' own counts");
  const counts = { shop: clients.shop.count(), game: clients.game.count(), uploader: clients.uploader.count() };
  const read = async (): Promise<readonly UsageItem[]> =>
    (await client.get<ItemList<UsageItem>>('/api/v1/usage')).items;
  let items = await read();
  const isExact = (tenant: 'shop' | 'game'): boolean => isUsageEqual(items, tenant, counts[tenant]);
  const billed = (): number => items.find((item) => item.tenant === 'uploader')?.receivedBytes ?? 0;
  await pollUntil(
    async () => {
      items = await read();
      // Each proxy flushes its usage once a second, so the ledger may not contain the last traffic yet.
      return isExact('shop') && isExact('game') && billed() >= backends.receivedUploadBytes();
    },
    { withinMs: 10_000, signal },
  );
  for (const tenant of ['shop', 'game'] as const) {
    report.check(
      `${tenant}: the usage equals the clients' own counts exactly`,
      isExact(tenant),
      usageComparisonText(items, tenant, counts[tenant]),
    );
    const { failures } = counts[tenant];
    report.check(
      `${tenant}: every request of the whole demo got the answer of its server`,
      failures.count === 0,
      failures.last,
    );
  }
  // The usage of the uploader is between two counts: when its connections were reset, some bytes had left the client but had not reached
  // the backend.
  const isBetween = billed() > 0 && billed() <= counts.uploader.sentBytes && billed() >= backends.receivedUploadBytes();
  report.check(
    'uploader: usage is at least what the backend received and at most what the client sent, despite the resets',
    isBetween,
    `${countText(backends.receivedUploadBytes())} ≤ ${countText(billed())} ≤ ${countText(counts.uploader.sentBytes)} bytes`,
  );
}

function isUsageEqual(items: readonly UsageItem[], tenant: string, count: TrafficCount): boolean {
  const item = items.find((each) => each.tenant === tenant);
  return (
    item !== undefined &&
    item.receivedBytes === count.sentBytes &&
    item.sentBytes === count.receivedBytes &&
    item.connections === count.connections &&
    item.requests === count.requests &&
    (item.requestsByCodeClass?.['5xx'] ?? 0) === count.serverErrors
  );
}

function usageComparisonText(items: readonly UsageItem[], tenant: string, count: TrafficCount): string {
  const item = items.find((each) => each.tenant === tenant);
  const ledger = [item?.receivedBytes, item?.sentBytes, item?.connections, item?.requests].map((value) =>
    countText(value ?? 0),
  );
  const clients = [count.sentBytes, count.receivedBytes, count.connections, count.requests].map(countText);
  const text = `in ${ledger[0]}, out ${ledger[1]} bytes, ${ledger[2]} connections, ${ledger[3]} requests`;
  return `${text}; clients: ${clients.join(', ')}`;
}

/** Prints the progress of the demo and collects the failed checks. */
export class DemoReport {
  readonly #terminal: Terminal;
  readonly #paint: Colourize;
  readonly #failures: string[] = [];

  constructor(terminal: Terminal) {
    this.#terminal = terminal;
    this.#paint = colourizeFor(terminal.colour);
  }

  get failures(): readonly string[] {
    return this.#failures;
  }

  title(text: string): void {
    this.#terminal.out(`\n${this.#paint('bold', text)}\n`);
  }

  info(text: string): void {
    this.#terminal.out(`${text.replace(/^/gm, '  ')}\n`);
  }

  /** Prints the result of a check. `expectation` is a whole sentence, and `details` are the measured values. */
  check(expectation: string, isMet: boolean, details = ''): void {
    const mark = isMet ? this.#paint('green', 'ok    ') : this.#paint('red', 'FAILED');
    this.#terminal.out(`  ${mark} ${expectation}${details === '' ? '' : `: ${details}`}\n`);
    if (!isMet) this.#failures.push(expectation);
  }
}
