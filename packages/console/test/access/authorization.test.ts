// Tests which users may use which route, with a real API server and the Roles of a platform team.
import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { ManualClock, silentLogger } from '@weir/runtime';
import { requireProgram } from '@weir/tools';
import { kubernetesSuspensionWriter } from '../../src/index.ts';
import { ACCOUNTS, type Account, type RbacCluster, startRbacCluster } from '../fixtures/rbac-cluster.ts';
import { jsonRequest, startTestConsole, type TestConsole } from '../fixtures/test-console.ts';
import { RIVAL_DATA, SHOP_DATA, type TwoTenantStore, twoTenantStore } from '../fixtures/two-tenants.ts';

type StatusByAccount = Readonly<Record<Account, number>>;

const all = (status: number): StatusByAccount =>
  Object.fromEntries(ACCOUNTS.map((account) => [account, status])) as StatusByAccount;
const tenants: StatusByAccount = { ...all(200), stopper: 403, newcomer: 403 };
const operators: StatusByAccount = { ...all(403), auditor: 200, operator: 200 };

/** The expected status by route and user. Every route of the OpenAPI document must be listed here. */
const ROUTES: Readonly<Record<string, StatusByAccount>> = {
  'GET /healthz': all(200),
  'GET /readyz': all(200),
  'GET /metrics': operators,
  'GET /api/v1/me': all(200),
  'GET /api/v1/fleet': operators,
  'GET /api/v1/proxies': operators,
  'GET /api/v1/table': operators,
  'GET /api/v1/problems': tenants,
  'GET /api/v1/services': tenants,
  'GET /api/v1/services/{namespace}/{name}': { ...operators, 'shop-dev': 200 },
  // 404, because the Service has no access log.
  'GET /api/v1/services/{namespace}/{name}/access-log': { ...all(403), auditor: 404, operator: 404, 'shop-dev': 404 },
  'GET /api/v1/tenants': tenants,
  'GET /api/v1/tenants/{tenant}/series': { ...operators, 'shop-dev': 200 },
  // 404, because no proxy answers.
  'GET /api/v1/tenants/{tenant}/top-clients': { ...all(403), auditor: 404, operator: 404, 'shop-dev': 404 },
  'GET /api/v1/usage': tenants,
  'GET /api/v1/usage/series': tenants,
  'GET /api/v1/suspensions': tenants,
  'GET /api/v1/suspensions/audit': tenants,
  'GET /api/v1/live': tenants,
  'POST /api/v1/suspensions': { ...all(403), operator: 200, stopper: 200 },
  // 404, because there is no Suspension with this name. Only users who may delete Suspensions get this status.
  'DELETE /api/v1/suspensions/{name}': { ...all(403), operator: 404 },
};
const PUBLIC_ROUTES = ['GET /healthz', 'GET /readyz'];
type Names = Readonly<Record<string, string>>;
const SHOP_NAMES: Names = { namespace: 'shop', name: 'web', tenant: 'shop' };
const RIVAL_NAMES: Names = { namespace: 'rival', name: 'rival-api', tenant: 'rival' };
const SUSPEND_WEB = { target: { type: 'Service', namespace: 'shop', service: 'web' }, message: 'stop' };

describe('authorization', requireProgram('etcd', 'kube-apiserver', 'kube-controller-manager', 'kubectl'), () => {
  let cluster: RbacCluster;
  let seeded: TwoTenantStore;
  let console: TestConsole;
  const tokens = new Map<Account, string>();

  before(async () => {
    cluster = await startRbacCluster();
    for (const account of ACCOUNTS) tokens.set(account, await cluster.token(account));
    const clock = new ManualClock(Date.now());
    seeded = await twoTenantStore(clock);
    await seeded.flushUsageOfBoth(1);
    const { kubeconfig } = cluster;
    const log = silentLogger();
    console = await startTestConsole({
      seeded,
      clock,
      auth: { kind: 'kubernetes', kubeconfig },
      suspensionWriter: kubernetesSuspensionWriter({
        kubeconfig,
        suspensionStore: seeded.store.suspensions,
        clock,
        log,
      }),
    });
  });
  after(async () => {
    await console?.[Symbol.asyncDispose]();
    await cluster?.[Symbol.asyncDispose]();
  });

  const request = async (
    route: string,
    token: string | undefined,
    names = SHOP_NAMES,
  ): Promise<{ status: number; text: string }> => {
    const [method = '', template = ''] = route.split(' ');
    const path = template.replaceAll(/\{(\w+)\}/g, (_, name: string) => names[name] ?? '');
    const headers: Record<string, string> = token === undefined ? {} : { authorization: `Bearer ${token}` };
    const init = method === 'POST' ? jsonRequest(method, SUSPEND_WEB, headers) : { method, headers };
    if (path !== '/api/v1/live') return console.request(path, init);
    return firstEvents(new URL(path, console.url), headers);
  };

  const resume = (): Promise<unknown> =>
    request('DELETE /api/v1/suspensions/{name}', tokens.get('operator'), { name: 'service.shop.web' });
  /** Sends a request of `account` that suspends `shop/web`. */
  const suspend = (
    account: Account,
    message: string,
    more: { until?: string; query?: string } = {},
  ): ReturnType<typeof request> => {
    const { query = '', ...body } = more;
    const headers = { authorization: `Bearer ${tokens.get(account)}` };
    return console.request(
      `/api/v1/suspensions${query}`,
      jsonRequest('POST', { ...SUSPEND_WEB, ...body, message }, headers),
    );
  };
  const readObject = async (): Promise<{
    metadata: { annotations: Record<string, string> };
    spec: { message: string };
  }> => JSON.parse(await cluster.plane.kubectl('get', 'suspension', 'service.shop.web', '-o', 'json'));

  test('the table of this test contains exactly the routes of the OpenAPI document', async () => {
    const { paths } = (await console.request('/openapi.json')).json as {
      paths: Record<string, Record<string, object>>;
    };
    const routes = Object.entries(paths).flatMap(([path, methods]) =>
      Object.keys(methods).map((method) => `${method.toUpperCase()} ${path}`),
    );
    assert.deepEqual(routes.sort(), Object.keys(ROUTES).sort());
  });

  test('reveals nothing of the fleet without a valid token', async () => {
    for (const route of Object.keys(ROUTES)) {
      for (const token of [undefined, 'nobody', `${tokens.get('operator')}x`]) {
        const { status, text } = await request(route, token);
        assert.equal(status, PUBLIC_ROUTES.includes(route) ? 200 : 401, `${route}: ${text}`);
        assert.doesNotMatch(text, RIVAL_DATA);
        assert.doesNotMatch(text, SHOP_DATA);
      }
    }
  });

  for (const account of ACCOUNTS) {
    test(`${account} gets the expected status on every route, and 403 names the missing right`, async () => {
      for (const [route, statuses] of Object.entries(ROUTES)) {
        const { status, text } = await request(route, tokens.get(account));
        assert.equal(status, statuses[account], `${route}: ${text}`);
        if (status === 403)
          assert.match(text, /"code":"NotAllowed".*people:.*lacks the right to (get|create|delete) \w+\.weir\.dev/);
      }
      await resume();
    });
  }

  for (const [account, names, ownData, otherData] of [
    ['shop-dev', SHOP_NAMES, SHOP_DATA, RIVAL_DATA],
    ['rival-dev', RIVAL_NAMES, RIVAL_DATA, SHOP_DATA],
  ] as const) {
    test(`${account} gets no data of the other tenant on any route`, async () => {
      const texts: string[] = [];
      for (const route of Object.keys(ROUTES).filter((each) => each.startsWith('GET'))) {
        const { text } = await request(route, tokens.get(account), names);
        assert.doesNotMatch(text, otherData, route);
        texts.push(text);
      }
      assert.match(texts.join(''), ownData);
    });
  }

  test('does not reveal whether another tenant exists', async () => {
    const paths = [
      '/api/v1/services/NAME/NAME-api',
      '/api/v1/tenants/NAME/series',
      '/api/v1/usage?tenant=NAME',
      '/api/v1/usage/series?tenant=NAME',
      '/api/v1/usage/series?namespace=NAME&name=NAME-api',
    ];
    for (const path of paths) {
      const answers = await Promise.all(
        ['rival', 'nowhere'].map(async (name) => {
          const { status, text } = await request(`GET ${path.replaceAll('NAME', name)}`, tokens.get('shop-dev'));
          return { status, text: text.replaceAll(name, 'NAME') };
        }),
      );
      assert.equal(answers[0]?.status, 403);
      assert.deepEqual(answers[0], answers[1]);
    }
    for (const query of ['namespace=rival', 'tenant=rival', 'namespace=nowhere']) {
      const { text } = await request(`GET /api/v1/services?${query}`, tokens.get('shop-dev'));
      assert.deepEqual(JSON.parse(text), { items: [] });
    }
  });

  test('shows the totals of a tenant, but only its visible namespaces', async () => {
    const { text } = await request('GET /api/v1/tenants', tokens.get('rival-dev'));
    const [rival] = JSON.parse(text).items;
    assert.deepEqual(rival.namespaces, ['rival']);
    assert.deepEqual(rival.limits, { services: 7_777_777, trafficPerMonth: 77_777_770_000 });
    assert.equal(rival.used.trafficThisMonth, 7_777_778);
  });

  test('returns the namespaces and rights of the user for the page', async () => {
    const userOf = async (account: Account): Promise<unknown> => {
      const { user, namespaces, may } = JSON.parse((await request('GET /api/v1/me', tokens.get(account))).text);
      return { user, namespaces, may };
    };
    const user = (name: string): string => `system:serviceaccount:people:${name}`;
    assert.deepEqual(await userOf('shop-dev'), {
      user: user('shop-dev'),
      namespaces: ['shop'],
      may: { suspend: false, resume: false },
    });
    assert.deepEqual(await userOf('operator'), {
      user: user('operator'),
      namespaces: null,
      may: { suspend: true, resume: true },
    });
    assert.deepEqual(await userOf('newcomer'), {
      user: user('newcomer'),
      namespaces: [],
      may: { suspend: false, resume: false },
    });
  });

  test('names the user in the Suspension', async () => {
    await suspend('operator', 'stop');
    const { annotations } = (await readObject()).metadata;
    assert.equal(annotations['weir.dev/made-by'], 'system:serviceaccount:people:operator');
    await resume();
  });

  test('lets only the user who created a Suspension change it', async () => {
    await suspend('operator', 'stop');
    assert.equal((await suspend('operator', 'Stop, please.')).status, 200);
    const { status, text } = await suspend('stopper', 'mine');
    assert.equal(status, 409);
    assert.match(text, /AlreadySuspended.*service\.shop\.web.*people:operator.*weir suspend --replace/);
    assert.equal((await readObject()).spec.message, 'Stop, please.');
    const [suspension] = (await seeded.store.suspensions.read()).suspensions;
    assert.equal(suspension?.message, 'Stop, please.');
    await resume();
  });

  test('replaces all fields of a Suspension made with kubectl, but only with replace=true', async () => {
    const spec = { target: SUSPEND_WEB.target, message: 'by hand', until: '2099-01-01T00:00:00Z' };
    const byHand = {
      apiVersion: 'weir.dev/v1alpha1',
      kind: 'Suspension',
      metadata: { name: 'service.shop.web' },
      spec,
    };
    await cluster.plane.kubectl('apply', '-f', '-', { stdin: JSON.stringify(byHand) });
    for (const message of ['by hand', 'mine']) assert.equal((await suspend('operator', message)).status, 409, message);
    assert.equal((await suspend('operator', 'mine', { query: '?replace=true' })).status, 200);
    assert.deepEqual((await readObject()).spec, { target: SUSPEND_WEB.target, message: 'mine' });
    // The operator now owns the replaced Suspension, so a second request needs no `replace=true`.
    assert.equal((await suspend('operator', 'again')).status, 200);
    await resume();
  });

  test('shortens a Suspension only with replace and the right to delete', async () => {
    await suspend('operator', 'stop');
    const until = new Date(Date.now() + 60_000).toISOString();
    const sooner = await suspend('operator', 'stop', { until });
    assert.equal(sooner.status, 409);
    assert.match(sooner.text, /AlreadySuspended.*ends later than the request/);
    const refused = await suspend('stopper', 'stop', { until, query: '?replace=true' });
    assert.equal(refused.status, 403);
    assert.match(refused.text, /delete suspensions\.weir\.dev/);
    assert.equal((await suspend('operator', 'stop', { until, query: '?replace=true' })).status, 200);
    await resume();
  });

  test('accepts a token for the console’s audience, and refuses one for another audience', async () => {
    const ours = await cluster.token('auditor', '--audience', 'console.weir.dev');
    assert.equal((await request('GET /api/v1/fleet', ours)).status, 200);
    const theirs = await cluster.token('auditor', '--audience', 'vault.example');
    assert.equal((await request('GET /api/v1/fleet', theirs)).status, 401);
    await assert.rejects(
      cluster.plane.kubectl(
        'get',
        'namespaces',
        '--token',
        ours,
        '--kubeconfig',
        '/dev/null',
        '--server',
        cluster.plane.server,
        '--insecure-skip-tls-verify',
      ),
    );
  });
});

/** Returns the first chunk of a live stream, or the error response. */
async function firstEvents(url: URL, headers: Record<string, string>): Promise<{ status: number; text: string }> {
  const response = await fetch(url, { headers });
  if (response.status !== 200) return { status: response.status, text: await response.text() };
  const { value } = (await response.body?.getReader().read()) ?? {};
  await response.body?.cancel().catch(() => {});
  return { status: 200, text: new TextDecoder().decode(value) };
}
