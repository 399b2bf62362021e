import type { FleetProblem, LiveFrame, SuspensionItem, UsageItem } from '@weir/console';
import type { ServiceView } from '@weir/model';
import { systemClock, wait } from '@weir/runtime';
import type { ConsoleClient } from '../client/console-client.ts';
import { liveFrames } from '../client/live-frames.ts';
import type { ItemList } from '../client/responses.ts';
import { bitRateText, bytesText, countText } from '../output/amounts.ts';
import { type Colourize, colourizeFor } from '../output/ansi.ts';
import { sortedFrame, topText } from '../output/top-text.ts';
import type { Terminal } from '../terminal.ts';
import type { Backends } from './backends.ts';
import type { DemoClients, TrafficCount } from './traffic.ts';

// What a watcher sees, in order. Everything is asked of the console, as a person would, and compared with what the
// clients themselves counted.
export interface DemoContext {
  readonly client: ConsoleClient;
  readonly report: DemoReport;
  readonly signal: AbortSignal;
}

const REFUSED_SERVICE = 'shop/web-preview';

/** One that `addressesScene` tells: said before, as an error, it would look like a failure. */
export function isExpectedProblem({ code, subject }: Pick<FleetProblem, 'code' | 'subject'>): boolean {
  return code === 'QuotaExceeded' && subject === `Service ${REFUSED_SERVICE}`;
}

/** Every Service has its addresses, but the one that is too many. */
export async function showAddresses({ client, report }: DemoContext): Promise<readonly ServiceView[]> {
  report.title('The manifests are applied: who gets an address, and who is told why not');
  const { items } = await client.get<ItemList<ServiceView>>('/api/v1/services');
  for (const service of items) {
    const name = `${service.namespace}/${service.name}`;
    if (name === REFUSED_SERVICE) {
      const isRefused = service.state === 'Refused' && service.reason === 'QuotaExceeded';
      report.check(`${name} is refused, with the reason`, isRefused, `${service.reason}: ${service.message}`);
    } else {
      const isServed = service.state === 'Programmed' && service.addresses.length === 2;
      report.check(`${name} is served at two nodes`, isServed, service.addresses.join(', ') || service.message);
    }
  }
  report.check('there are four Services of three tenants', items.length === 4, `${items.length}`);
  return items;
}

/** Frames to wait for: the mean over three seconds is then one of full seconds. */
const FRAMES_TO_WAIT = 4;

export async function showBandwidth({ client, report, signal }: DemoContext): Promise<void> {
  report.title('Traffic: who uses how much, live');
  const frame = await frameAfter(FRAMES_TO_WAIT, { client, signal });
  report.info(topText(sortedFrame(frame, { sort: 'in' }), false).trimEnd());
  const rateOf = (name: string): number => {
    const tenant = frame.tenants.find((each) => each.name === name);
    return (tenant?.inBitsPerSecond ?? 0) + (tenant?.outBitsPerSecond ?? 0);
  };
  for (const name of ['shop', 'game']) {
    report.check(`the bandwidth of ${name} is visible`, rateOf(name) > 0, bitRateText(rateOf(name)));
  }
  const isMost = rateOf('uploader') > rateOf('shop') + rateOf('game');
  report.check('the uploader takes more than the others together', isMost, bitRateText(rateOf('uploader')));
}

async function frameAfter(count: number, { client, signal }: Omit<DemoContext, 'report'>): Promise<LiveFrame> {
  const done = new AbortController();
  let seen = 0;
  try {
    for await (const frame of liveFrames(client, AbortSignal.any([signal, done.signal]))) {
      seen += 1;
      if (seen >= count) return frame;
    }
  } finally {
    done.abort();
  }
  throw new Error('the console stopped sending rates');
}

const SUSPENSION_MESSAGE = 'Your uploads fill the link of everybody; call the platform team.';
const MAX_TERMINATION_MS = 1_000;
const SUSPENSION_DURATION_MS = 3_000;

/** The abuser is cut off and lifted again; nobody else notices. */
export async function showSuspension({ client, report, signal }: DemoContext, clients: DemoClients): Promise<void> {
  report.title('The person on call cuts the uploader off: weir suspend uploader --message …');
  const { shop, game, uploader } = clients;
  const before = { shop: shop.count(), game: game.count(), open: uploader.openConnections() };
  const severed = uploader.allClosed();
  const startedAt = systemClock.monotonic();
  const target = { type: 'Tenant', tenant: 'uploader' };
  const { name } = await client.post<SuspensionItem>('/api/v1/suspensions', { target, message: SUSPENSION_MESSAGE });
  const isSevered = await Promise.race([severed.then(() => true), wait(systemClock, 5_000, signal).then(() => false)]);
  const tookMs = systemClock.monotonic() - startedAt;
  report.check(
    `its ${before.open} open connections are reset in less than a second`,
    isSevered && before.open > 0 && tookMs < MAX_TERMINATION_MS,
    `${Math.round(tookMs)} ms`,
  );
  const refusedBefore = uploader.refusedConnections();
  await wait(systemClock, SUSPENSION_DURATION_MS, signal);
  const refused = uploader.refusedConnections() - refusedBefore;
  report.check(
    'it comes back at once, and is refused',
    refused > 0 && uploader.openConnections() === 0,
    `${refused} attempts`,
  );
  const { items } = await client.get<ItemList<ServiceView>>('/api/v1/services');
  const intake = items.find((service) => service.namespace === 'uploader');
  const isTold = intake?.state === 'Suspended' && intake.message === SUSPENSION_MESSAGE && intake.addresses.length > 0;
  report.check('its Service says so, and keeps its addresses', isTold, `${intake?.state}: ${intake?.message}`);
  checkUndisturbed(report, { name: 'the shop', before: before.shop, after: shop.count() });
  checkUndisturbed(report, { name: 'the game', before: before.game, after: game.count() });

  report.title('The call was made; the uploader may come back: weir resume uploader');
  await client.delete(`/api/v1/suspensions/${name}`);
  const isBack = await pollUntil(() => uploader.openConnections() > 0, { withinMs: 3_000, signal });
  report.check('it is served again', isBack, `${uploader.openConnections()} connections`);
}

interface TenantTraffic {
  readonly name: string;
  readonly before: TrafficCount;
  readonly after: TrafficCount;
}

function checkUndisturbed(findings: DemoReport, { name, before, after }: TenantTraffic): void {
  const moved = after.receivedBytes - before.receivedBytes;
  const isUndisturbed = after.failures.length === 0 && moved > 0;
  const seen = after.failures[0] ?? `${bytesText(moved)} more, no failed request`;
  findings.check(`${name} did not notice`, isUndisturbed, seen);
}

/** After everybody has gone: the ledger against the clients' own counts. */
export async function showUsage(
  { client, report, signal }: DemoContext,
  clients: DemoClients,
  backends: Backends,
): Promise<void> {
  report.title('The bill: weir usage, against what the clients counted themselves');
  const counts = { shop: clients.shop.count(), game: clients.game.count(), uploader: clients.uploader.count() };
  const read = async (): Promise<readonly UsageItem[]> =>
    (await client.get<ItemList<UsageItem>>('/api/v1/usage')).items;
  let items = await read();
  const isExact = (tenant: 'shop' | 'game'): boolean => isUsageEqual(items, tenant, counts[tenant]);
  const billed = (): number => items.find((item) => item.tenant === 'uploader')?.receivedBytes ?? 0;
  await pollUntil(
    async () => {
      items = await read();
      // Each proxy flushes once a second, and not all at the same moment: the last one to come may be the uploader's.
      return isExact('shop') && isExact('game') && billed() >= backends.receivedUploadBytes();
    },
    { withinMs: 10_000, signal },
  );
  for (const tenant of ['shop', 'game'] as const) {
    report.check(`${tenant}: equal to the byte`, isExact(tenant), usageComparisonText(items, tenant, counts[tenant]));
    const { failures } = counts[tenant];
    report.check(`${tenant}: not one failed request from beginning to end`, failures.length === 0, failures[0] ?? '');
  }
  // What was under way when the connections were reset had left the client, and perhaps the proxy, but arrived nowhere.
  const isBetween = billed() > 0 && billed() <= counts.uploader.sentBytes && billed() >= backends.receivedUploadBytes();
  report.check(
    'uploader: no more than it sent, no less than arrived, though it was cut off in the middle',
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
    item.connections === count.connections
  );
}

function usageComparisonText(items: readonly UsageItem[], tenant: string, count: TrafficCount): string {
  const item = items.find((each) => each.tenant === tenant);
  const ledger = [item?.receivedBytes, item?.sentBytes, item?.connections].map((value) => countText(value ?? 0));
  const clients = [count.sentBytes, count.receivedBytes, count.connections].map(countText);
  return `in ${ledger[0]}, out ${ledger[1]} bytes, ${ledger[2]} connections; clients: ${clients.join(', ')}`;
}

/** Tells the story of the demo, and keeps what was not as it said. */
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

  /** What is said, and whether it was so. */
  check(said: string, isSo: boolean, seen = ''): void {
    const mark = isSo ? this.#paint('green', 'ok ') : this.#paint('red', 'NOT');
    this.#terminal.out(`  ${mark} ${said}${seen === '' ? '' : `: ${seen}`}\n`);
    if (!isSo) this.#failures.push(said);
  }
}

const POLL_INTERVAL_MS = 20;

/** Whether the condition came true within the time; it is looked at again and again. */
export async function pollUntil(
  condition: () => boolean | Promise<boolean>,
  { withinMs, signal }: { readonly withinMs: number; readonly signal: AbortSignal },
): Promise<boolean> {
  const deadline = systemClock.monotonic() + withinMs;
  while (!(await condition())) {
    if (systemClock.monotonic() > deadline) return false;
    await wait(systemClock, POLL_INTERVAL_MS, signal);
  }
  return true;
}
