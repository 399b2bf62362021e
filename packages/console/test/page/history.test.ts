// Tests in a real browser what the page shows about Suspensions of the past and about refused clients.
import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { minuteOf, ZERO_COUNTERS } from '@weir/model';
import { systemClock } from '@weir/runtime';
import { requireProgram } from '@weir/tools';
import { type Browser, type Page, startBrowser } from '../fixtures/browser.ts';
import { startTestConsole, type TestConsole } from '../fixtures/test-console.ts';
import { twoTenantStore } from '../fixtures/two-tenants.ts';

/** So many Suspensions of the past that the audit trail has a second page. */
const PAST_SUSPENSIONS = 251;
const SCREENS = [
  { width: 360, scheme: 'light' },
  { width: 1_000, scheme: 'dark' },
  { width: 1_024, scheme: 'light' },
  { width: 1_920, scheme: 'dark' },
] as const;

describe('the page about Suspensions and refusals', requireProgram('chromium'), () => {
  let browser: Browser;
  let console: TestConsole;

  before(async () => {
    browser = await startBrowser();
    const clock = systemClock;
    const seeded = await twoTenantStore(clock);
    const { suspensions, usage } = seeded.store;
    const [known] = (await suspensions.read()).suspensions;
    assert.ok(known);
    for (let number = 0; number < PAST_SUSPENSIONS; number++) {
      const past = {
        ...known,
        uid: `past-${number}`,
        name: 'past',
        target: { kind: 'namespace', namespace: 'shop' },
      } as const;
      await suspensions.put({ ...past, message: 'Too many scans.', until: Date.UTC(2030, 0, 1) });
      await suspensions.remove(past.uid, { suspension: past, why: 'resumed', by: 'bob' });
    }
    const counters = { ...ZERO_COUNTERS, refused: { 'rate-limit': 1_234, 'source-range': 3 } };
    const points = [{ minute: minuteOf(clock.now()), counters }];
    const web = { service: 'uid-web', tenant: 'shop', namespace: 'shop', name: 'web', points };
    await usage.flush({ node: 'c', life: 1, slots: [web] });
    console = await startTestConsole({ seeded, clock });
  });
  after(async () => {
    await console?.[Symbol.asyncDispose]();
    await browser?.[Symbol.asyncDispose]();
  });

  const open = async (): Promise<Page> => {
    const page = await browser.open(console.url);
    await page.until('document.querySelectorAll("#history-rows tr").length > 0');
    return page;
  };
  const textsOf = (page: Page, selector: string): Promise<string[]> =>
    page.evaluate(`[...document.querySelectorAll(${JSON.stringify(selector)})].map((node) => node.textContent)`);
  const choose = (page: Page, id: string, value: string): Promise<unknown> =>
    page.evaluate(`{
      const selection = document.getElementById(${JSON.stringify(id)});
      selection.value = ${JSON.stringify(value)};
      selection.dispatchEvent(new Event('change'));
    }`);

  test('names target, author, time, end and message of each Suspension and release', async () => {
    const page = await open();
    const rows = await textsOf(page, '#history-rows tr');
    assert.match(rows[0] ?? '', /Released \(resumed\)namespace shopbob–/);
    assert.match(rows[1] ?? '', /Suspendednamespace shopalice.*2030.*Too many scans\./);
    const card = (await textsOf(page, '.card')).find((text) => text.startsWith('rival')) ?? '';
    assert.match(card, /for tenant\.rival to read \(until resumed; since .+ by alice\)/);
  });

  test('reads older items on demand, until the list is complete', async () => {
    const page = await open();
    assert.equal((await textsOf(page, '#history-rows tr')).length, 500);
    await page.evaluate('document.getElementById("history-tenant").focus()');
    await page.press('Tab');
    await page.until('document.activeElement.id === "history-older"');
    await page.press('Enter');
    await page.until(`document.querySelectorAll("#history-rows tr").length === ${2 * PAST_SUSPENSIONS + 2}`);
    await page.until('document.getElementById("history-older").hidden');
  });

  test('shows the items of one tenant, also if the newest items are of another tenant', async () => {
    const page = await open();
    assert.deepEqual(await textsOf(page, '#history-tenant option'), ['all', 'rival', 'shop']);
    await choose(page, 'history-tenant', 'rival');
    await page.until('document.querySelectorAll("#history-rows tr").length === 1');
    assert.match((await textsOf(page, '#history-rows tr')).join(), /Suspendedtenant rivalalice/);
  });

  test('counts refused clients by reason, and sorts tenants and Services by refusals', async () => {
    const page = await open();
    const refused = '1,237 this month: 1,234 rate-limit, 3 source-range';
    await page.until(`document.getElementById("tenant-list").textContent.includes("refused ${refused}")`);
    await choose(page, 'tenant-sort', 'name');
    assert.deepEqual(await textsOf(page, '.card h3'), ['rival', 'shop']);
    await choose(page, 'tenant-sort', 'refused');
    assert.deepEqual(await textsOf(page, '.card h3'), ['shop', 'rival']);
    await choose(page, 'service-sort', 'refused');
    const [first = ''] = await textsOf(page, '#service-rows tr');
    assert.ok(first.startsWith('shop/web') && first.includes(refused), first);
  });

  test('fits narrow and wide screens', async () => {
    const page = await open();
    for (const screen of SCREENS) {
      await page.emulateScreen(screen);
      const width = await page.evaluate('document.documentElement.scrollWidth');
      assert.ok(Number(width) <= screen.width, `the page is ${width} px wide at ${screen.width}`);
      const { WEIR_SCREENSHOTS } = process.env;
      if (WEIR_SCREENSHOTS !== undefined) await page.screenshot(`${WEIR_SCREENSHOTS}/history-${screen.width}.png`);
    }
  });
});
