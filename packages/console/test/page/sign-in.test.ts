// Tests the page in a real browser, signed in as users with different rights.
import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { systemClock } from '@weir/runtime';
import { requireProgram } from '@weir/tools';
import { type Browser, type Page, startBrowser } from '../fixtures/browser.ts';
import { type ReviewServer, startReviewServer } from '../fixtures/review-server.ts';
import { startTestConsole, type TestConsole } from '../fixtures/test-console.ts';
import { RIVAL_DATA, twoTenantStore } from '../fixtures/two-tenants.ts';

const USERS = {
  'token-of-dev': { name: 'system:serviceaccount:shop:developer-of-the-shop', may: ['get tenantusages shop'] },
  'token-of-operator': {
    name: 'operator@example.com',
    may: ['get tenantusages', 'create suspensions', 'delete suspensions'],
  },
  'token-of-newcomer': { name: 'newcomer', may: [] },
};
const SCREENS = [
  { width: 360, scheme: 'light' },
  { width: 1_280, scheme: 'dark' },
] as const;

describe('the page in a browser', requireProgram('chromium'), () => {
  let browser: Browser;
  let reviews: ReviewServer;
  let console: TestConsole;

  before(async () => {
    browser = await startBrowser();
    reviews = await startReviewServer(USERS);
    const clock = systemClock;
    const seeded = await twoTenantStore(clock);
    await seeded.flushUsageOfBoth(1_000);
    console = await startTestConsole({ seeded, clock, auth: { kind: 'kubernetes', kubeconfig: reviews.kubeconfig } });
  });
  after(async () => {
    await console?.[Symbol.asyncDispose]();
    await reviews?.[Symbol.asyncDispose]();
    await browser?.[Symbol.asyncDispose]();
  });

  /** Signs in with the keyboard only. */
  const signIn = async (page: Page, token: string): Promise<void> => {
    await page.until('document.activeElement.id === "sign-in-token"');
    await page.type(token);
    await page.press('Enter');
  };
  const isShown = (page: Page, id: string): Promise<boolean> =>
    page.evaluate(`document.getElementById("${id}").checkVisibility()`);
  const buttons = (page: Page): Promise<string[]> =>
    page.evaluate(
      '[...document.querySelectorAll("button")].filter((b) => b.checkVisibility()).map((b) => b.textContent)',
    );
  const assertFits = async (page: Page, name: string): Promise<void> => {
    for (const screen of SCREENS) {
      await page.emulateScreen(screen);
      const pageWidth = await page.evaluate('document.documentElement.scrollWidth');
      assert.ok(pageWidth <= screen.width, `${name} is ${pageWidth} px wide at ${screen.width}`);
      const { WEIR_SCREENSHOTS } = process.env;
      if (WEIR_SCREENSHOTS !== undefined) await page.screenshot(`${WEIR_SCREENSHOTS}/${name}-${screen.width}.png`);
    }
  };

  test('shows only the sign-in form and the command that creates a token', async () => {
    const page = await browser.open(console.url);
    await page.until('document.activeElement.id === "sign-in-token"');
    for (const id of ['tenants', 'services', 'proxies', 'problems', 'user', 'connection'])
      assert.equal(await isShown(page, id), false, id);
    assert.deepEqual(await buttons(page), ['Sign in']);
    assert.match(await page.evaluate('document.body.innerText'), /kubectl create token NAME -n NAMESPACE --audience/);
    await assertFits(page, 'sign-in');
  });

  test('refuses an invalid token with a message and does not store it', async () => {
    const page = await browser.open(console.url);
    await signIn(page, 'nobody');
    await page.until('document.getElementById("sign-in-error").textContent.includes("does not accept this token")');
    assert.equal(await page.evaluate('sessionStorage.getItem("weir.token")'), null);
    await assertFits(page, 'refused');
  });

  test('shows a tenant its own live data and no actions without the right', async () => {
    const page = await browser.open(console.url);
    await signIn(page, 'token-of-dev');
    await page.until('document.querySelectorAll("#service-rows tr").length === 2');
    await page.until('document.getElementById("connection-text").textContent === "live"');
    assert.deepEqual(await buttons(page), ['Sign out']);
    assert.equal(await isShown(page, 'proxies'), false);
    const text = await page.evaluate('document.body.innerText');
    assert.match(text, /signed in as\s+system:serviceaccount:shop:developer-of-the-shop/);
    assert.doesNotMatch(text, RIVAL_DATA);
    await assertFits(page, 'tenant');
  });

  test('keeps the token in the tab only, and removes token and data on sign-out', async () => {
    const page = await browser.open(console.url);
    await signIn(page, 'token-of-dev');
    await page.until('document.querySelectorAll("#service-rows tr").length === 2');
    assert.deepEqual(await page.evaluate('[localStorage.length, document.cookie, location.search + location.hash]'), [
      0,
      '',
      '',
    ]);
    await page.evaluate('document.getElementById("sign-out").click()');
    await page.until('document.activeElement.id === "sign-in-token"');
    assert.equal(await page.evaluate('sessionStorage.getItem("weir.token")'), null);
    assert.doesNotMatch(await page.evaluate('document.body.textContent'), /shop/);
  });

  test('shows at the form that the session has ended', async () => {
    const page = await browser.open(console.url);
    await page.evaluate('sessionStorage.setItem("weir.token", "token-that-has-ended"); location.reload()');
    await page.until('document.getElementById("sign-in-error").textContent.includes("it may have expired")');
  });

  test('keeps a token that is stored while a request without a token is refused', async () => {
    const page = await browser.open(console.url);
    await page.until('document.activeElement.id === "sign-in-token"');
    await page.evaluate(`
      const send = window.fetch;
      window.fetch = async (...request) => {
        const response = await send(...request);
        sessionStorage.setItem("weir.token", "token-of-dev");
        return response;
      };
    `);
    await page.until('document.querySelectorAll("#service-rows tr").length === 2');
  });

  test('shows an operator everything, with Suspend and Resume', async () => {
    const page = await browser.open(console.url);
    await signIn(page, 'token-of-operator');
    await page.until('document.querySelectorAll("#service-rows tr").length === 3');
    assert.equal(await isShown(page, 'proxies'), true);
    const found = await buttons(page);
    assert.ok(found.includes('Suspend…') && found.includes('Resume'), found.join());
    const banner: string = await page.evaluate('document.getElementById("suspension-list").textContent');
    assert.match(banner, /for tenant\.rival to read \(until resumed; since .+ by alice\)/);
    await assertFits(page, 'operator');
  });

  test('names the missing right for a user without rights', async () => {
    const page = await browser.open(console.url);
    await signIn(page, 'token-of-newcomer');
    await page.until(
      'document.getElementById("alert").textContent.includes("newcomer may see none of the namespaces")',
    );
    assert.deepEqual(await buttons(page), ['Sign out']);
    await assertFits(page, 'newcomer');
  });

  test('shows neither form nor user without authentication', async () => {
    await using open = await startTestConsole();
    const page = await browser.open(open.url);
    await page.until('document.querySelectorAll("#service-rows tr").length === 2');
    for (const id of ['sign-in', 'user']) assert.equal(await isShown(page, id), false);
    assert.equal(await isShown(page, 'proxies'), true);
  });
});
