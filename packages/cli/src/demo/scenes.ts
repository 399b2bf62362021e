// What a watcher sees, in order. Everything is asked of the console, as a person would, and compared with what the
// clients themselves counted.
import type { FleetProblem, LiveFrame, SuspensionItem, UsageItem } from '@weir/console';
import type { ServiceView } from '@weir/model';
import { systemClock, wait } from '@weir/runtime';
import type { Items } from '../client/answers.ts';
import type { ConsoleClient } from '../client/console-client.ts';
import { liveFrames } from '../client/live.ts';
import { bitRateText, bytesText, countText } from '../output/amounts.ts';
import { sortedFrame, topText } from '../output/top-text.ts';
import type { Backends } from './backends.ts';
import type { Clients } from './clients.ts';
import type { Findings } from './findings.ts';
import type { TrafficCount } from './traffic.ts';
import { until } from './until.ts';

export interface Stage {
  readonly client: ConsoleClient;
  readonly findings: Findings;
  readonly signal: AbortSignal;
}

const REFUSED = 'shop/web-preview';

/** One that `addressesScene` tells: said before, as an error, it would look like a failure. */
export function isOfTheStory({ code, subject }: Pick<FleetProblem, 'code' | 'subject'>): boolean {
  return code === 'QuotaExceeded' && subject === `Service ${REFUSED}`;
}

/** Every Service has its addresses, but the one that is too many. */
export async function addressesScene({ client, findings }: Stage): Promise<readonly ServiceView[]> {
  findings.title('The manifests are applied: who gets an address, and who is told why not');
  const { items } = await client.get<Items<ServiceView>>('/api/v1/services');
  for (const service of items) {
    const name = `${service.namespace}/${service.name}`;
    if (name === REFUSED) {
      const isRefused = service.state === 'Refused' && service.reason === 'QuotaExceeded';
      findings.check(`${name} is refused, with the reason`, isRefused, `${service.reason}: ${service.message}`);
    } else {
      const isServed = service.state === 'Programmed' && service.addresses.length === 2;
      findings.check(`${name} is served at two nodes`, isServed, service.addresses.join(', ') || service.message);
    }
  }
  findings.check('there are four Services of three tenants', items.length === 4, `${items.length}`);
  return items;
}

/** Frames to wait for: the mean over three seconds is then one of full seconds. */
const FRAMES = 4;

export async function bandwidthScene({ client, findings, signal }: Stage): Promise<void> {
  findings.title('Traffic: who uses how much, live');
  const frame = await frameAfter(FRAMES, { client, signal });
  findings.tell(topText(sortedFrame(frame, { sort: 'in' }), false).trimEnd());
  const rateOf = (name: string): number => {
    const tenant = frame.tenants.find((each) => each.name === name);
    return (tenant?.inBitsPerSecond ?? 0) + (tenant?.outBitsPerSecond ?? 0);
  };
  for (const name of ['shop', 'game']) {
    findings.check(`the bandwidth of ${name} is visible`, rateOf(name) > 0, bitRateText(rateOf(name)));
  }
  const isMost = rateOf('uploader') > rateOf('shop') + rateOf('game');
  findings.check('the uploader takes more than the others together', isMost, bitRateText(rateOf('uploader')));
}

async function frameAfter(count: number, { client, signal }: Omit<Stage, 'findings'>): Promise<LiveFrame> {
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

const MESSAGE = 'Your uploads fill the link of everybody; call the platform team.';
const SEVERED_WITHIN_MS = 1_000;
const CUT_OFF_FOR_MS = 3_000;

/** The abuser is cut off and lifted again; nobody else notices. */
export async function suspensionScene({ client, findings, signal }: Stage, clients: Clients): Promise<void> {
  findings.title('The person on call cuts the uploader off: weir suspend uploader --message …');
  const { shop, game, uploader } = clients;
  const before = { shop: shop.count(), game: game.count(), open: uploader.open() };
  const severed = uploader.severed();
  const startedAt = systemClock.monotonic();
  const target = { type: 'Tenant', tenant: 'uploader' };
  const { name } = await client.post<SuspensionItem>('/api/v1/suspensions', { target, message: MESSAGE });
  const isSevered = await Promise.race([severed.then(() => true), wait(systemClock, 5_000, signal).then(() => false)]);
  const tookMs = systemClock.monotonic() - startedAt;
  findings.check(
    `its ${before.open} open connections are reset in less than a second`,
    isSevered && before.open > 0 && tookMs < SEVERED_WITHIN_MS,
    `${Math.round(tookMs)} ms`,
  );
  const refusedBefore = uploader.refused();
  await wait(systemClock, CUT_OFF_FOR_MS, signal);
  const refused = uploader.refused() - refusedBefore;
  findings.check('it comes back at once, and is refused', refused > 0 && uploader.open() === 0, `${refused} attempts`);
  const { items } = await client.get<Items<ServiceView>>('/api/v1/services');
  const intake = items.find((service) => service.namespace === 'uploader');
  const isTold = intake?.state === 'Suspended' && intake.message === MESSAGE && intake.addresses.length > 0;
  findings.check('its Service says so, and keeps its addresses', isTold, `${intake?.state}: ${intake?.message}`);
  checkUndisturbed(findings, { name: 'the shop', before: before.shop, after: shop.count() });
  checkUndisturbed(findings, { name: 'the game', before: before.game, after: game.count() });

  findings.title('The call was made; the uploader may come back: weir resume uploader');
  await client.delete(`/api/v1/suspensions/${name}`);
  const isBack = await until(() => uploader.open() > 0, { withinMs: 3_000, signal });
  findings.check('it is served again', isBack, `${uploader.open()} connections`);
}

interface Undisturbed {
  readonly name: string;
  readonly before: TrafficCount;
  readonly after: TrafficCount;
}

function checkUndisturbed(findings: Findings, { name, before, after }: Undisturbed): void {
  const moved = after.gotBytes - before.gotBytes;
  const isUndisturbed = after.failures.length === 0 && moved > 0;
  const seen = after.failures[0] ?? `${bytesText(moved)} more, no failed request`;
  findings.check(`${name} did not notice`, isUndisturbed, seen);
}

/** After everybody has gone: the ledger against the clients' own counts. */
export async function usageScene(
  { client, findings, signal }: Stage,
  clients: Clients,
  backends: Backends,
): Promise<void> {
  findings.title('The bill: weir usage, against what the clients counted themselves');
  const counts = { shop: clients.shop.count(), game: clients.game.count(), uploader: clients.uploader.count() };
  const read = async (): Promise<readonly UsageItem[]> => (await client.get<Items<UsageItem>>('/api/v1/usage')).items;
  let items = await read();
  const isExact = (tenant: 'shop' | 'game'): boolean => isSame(items, tenant, counts[tenant]);
  const billed = (): number => items.find((item) => item.tenant === 'uploader')?.receivedBytes ?? 0;
  await until(
    async () => {
      items = await read();
      // Each proxy flushes once a second, and not all at the same moment: the last one to come may be the uploader's.
      return isExact('shop') && isExact('game') && billed() >= backends.takenIn();
    },
    { withinMs: 10_000, signal },
  );
  for (const tenant of ['shop', 'game'] as const) {
    findings.check(`${tenant}: equal to the byte`, isExact(tenant), pairText(items, tenant, counts[tenant]));
    const { failures } = counts[tenant];
    findings.check(`${tenant}: not one failed request from beginning to end`, failures.length === 0, failures[0] ?? '');
  }
  // What was under way when the connections were reset had left the client, and perhaps the proxy, but arrived nowhere.
  const isBetween = billed() > 0 && billed() <= counts.uploader.sentBytes && billed() >= backends.takenIn();
  findings.check(
    'uploader: no more than it sent, no less than arrived, though it was cut off in the middle',
    isBetween,
    `${countText(backends.takenIn())} ≤ ${countText(billed())} ≤ ${countText(counts.uploader.sentBytes)} bytes`,
  );
}

function isSame(items: readonly UsageItem[], tenant: string, count: TrafficCount): boolean {
  const item = items.find((each) => each.tenant === tenant);
  return (
    item !== undefined &&
    item.receivedBytes === count.sentBytes &&
    item.sentBytes === count.gotBytes &&
    item.connections === count.connections
  );
}

function pairText(items: readonly UsageItem[], tenant: string, count: TrafficCount): string {
  const item = items.find((each) => each.tenant === tenant);
  const ledger = [item?.receivedBytes, item?.sentBytes, item?.connections].map((value) => countText(value ?? 0));
  const clients = [count.sentBytes, count.gotBytes, count.connections].map(countText);
  return `in ${ledger[0]}, out ${ledger[1]} bytes, ${ledger[2]} connections; clients: ${clients.join(', ')}`;
}
