// The page as people of several rights see it.
import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { systemClock } from '@weir/runtime';
import { requireProgram } from '@weir/tools';
import { type Browser, type Page, startBrowser } from '../fixtures/browser.ts';
import { type ReviewServer, startReviewServer } from '../fixtures/review-server.ts';
import { startTestConsole, type TestConsole } from '../fixtures/test-console.ts';
import { RIVAL_DATA, twoTenantStore } from '../fixtures/two-tenants.ts';

const PEOPLE = {
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
    reviews = await startReviewServer(PEOPLE);
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

  /** With the keyboard alone. */
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
  const fits = async (page: Page, name: string): Promise<void> => {
    for (const screen of SCREENS) {
      await page.emulateScreen(screen);
      const wide = await page.evaluate('document.documentElement.scrollWidth');
      assert.ok(wide <= screen.width, `${name} is ${wide} wide at ${screen.width}`);
      const { WEIR_SCREENSHOTS } = process.env;
      if (WEIR_SCREENSHOTS !== undefined) await page.screenshot(`${WEIR_SCREENSHOTS}/${name}-${screen.width}.png`);
    }
  };

  test('nobody is signed in: there is the form, with the command that makes a token, and nothing else', async () => {
    const page = await browser.open(console.url);
    await page.until('document.activeElement.id === "sign-in-token"');
    for (const id of ['tenants', 'services', 'proxies', 'problems', 'who', 'link'])
      assert.equal(await isShown(page, id), false, id);
    assert.deepEqual(await buttons(page), ['Sign in']);
    assert.match(await page.evaluate('document.body.innerText'), /kubectl create token NAME -n NAMESPACE --audience/);
    await fits(page, 'sign-in');
  });

  test('a token that is nobody’s is refused in words, and not kept', async () => {
    const page = await browser.open(console.url);
    await signIn(page, 'nobody');
    await page.until('document.getElementById("sign-in-error").textContent.includes("does not accept this token")');
    assert.equal(await page.evaluate('sessionStorage.getItem("weir.token")'), null);
    await fits(page, 'refused');
  });

  test('a tenant sees its own, live, and no button that would be refused', async () => {
    const page = await browser.open(console.url);
    await signIn(page, 'token-of-dev');
    await page.until('document.querySelectorAll("#service-rows tr").length === 2');
    await page.until('document.getElementById("link-text").textContent === "live"');
    assert.deepEqual(await buttons(page), ['Sign out']);
    assert.equal(await isShown(page, 'proxies'), false);
    const text = await page.evaluate('document.body.innerText');
    assert.match(text, /signed in as\s+system:serviceaccount:shop:developer-of-the-shop/);
    assert.doesNotMatch(text, RIVAL_DATA);
    await fits(page, 'tenant');
  });

  test('the token is in this tab only; signing out leaves neither it nor what it showed', async () => {
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

  test('a session that ended says so at the form', async () => {
    const page = await browser.open(console.url);
    await page.evaluate('sessionStorage.setItem("weir.token", "token-that-has-ended"); location.reload()');
    await page.until('document.getElementById("sign-in-error").textContent.includes("or no longer")');
  });

  test('an operator sees all, and may cut off and resume', async () => {
    const page = await browser.open(console.url);
    await signIn(page, 'token-of-operator');
    await page.until('document.querySelectorAll("#service-rows tr").length === 3');
    assert.equal(await isShown(page, 'proxies'), true);
    const found = await buttons(page);
    assert.ok(found.includes('Suspend…') && found.includes('Resume'), found.join());
    await fits(page, 'operator');
  });

  test('who may see nothing is told what to ask for', async () => {
    const page = await browser.open(console.url);
    await signIn(page, 'token-of-newcomer');
    await page.until('document.getElementById("away").textContent.includes("newcomer may see none of the namespaces")');
    assert.deepEqual(await buttons(page), ['Sign out']);
    await fits(page, 'newcomer');
  });

  test('on loopback without sign-in there is neither form nor name', async () => {
    await using open = await startTestConsole();
    const page = await browser.open(open.url);
    await page.until('document.querySelectorAll("#service-rows tr").length === 2');
    for (const id of ['sign-in', 'who']) assert.equal(await isShown(page, id), false);
    assert.equal(await isShown(page, 'proxies'), true);
  });
});
