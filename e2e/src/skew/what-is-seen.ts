import assert from 'node:assert/strict';
import { eventually } from '@weir/testkit';

type Json = Readonly<Record<string, unknown>>;
type WeirCommand = (...args: string[]) => Promise<string>;

/** What the commands that ask a console tell of a fleet at rest: not each field, since a later version may tell more. */
export async function consoleView(weir: WeirCommand): Promise<Json> {
  const json = async (...args: string[]): Promise<Json> => JSON.parse(await weir(...args, '-o', 'json')) as Json;
  const items = async (...args: string[]): Promise<readonly Json[]> => (await json(...args)).items as readonly Json[];
  // One that has just started knows no table and no proxies yet.
  const proxies = await eventually(
    async () => {
      const seen = pickFields(await items('get', 'proxies'), 'node', 'state', 'addresses', 'listeners');
      assert.ok(seen.length > 0 && seen.every(({ state }) => state === 'Serving'), JSON.stringify(seen));
      return seen;
    },
    { timeoutMs: 30_000, intervalMs: 250 },
  );
  const [services, tenants, problems, usage, explained, { tenants: live }] = await Promise.all([
    items('get', 'services'),
    items('get', 'tenants'),
    items('get', 'problems'),
    items('usage', 'game'),
    json('explain', 'game/world'),
    json('top', '--once'),
  ]);
  return {
    proxies,
    services: pickFields(services, 'namespace', 'name', 'tenant', 'state', 'addresses', 'ports', 'endpoints'),
    tenants: pickFields(tenants, 'name', 'policy', 'limits', 'namespaces', 'suspension'),
    problems,
    usage: pickFields(usage, 'tenant', 'month', 'receivedBytes', 'sentBytes', 'connections', 'services'),
    explained: pickFields([explained], 'namespace', 'name', 'state', 'addresses'),
    live: pickFields(live as readonly Json[], 'name').toSorted((a, b) => (String(a.name) < String(b.name) ? -1 : 1)),
  };
}

function pickFields(items: readonly Json[], ...fields: readonly string[]): readonly Json[] {
  return items.map((item) => Object.fromEntries(fields.map((field) => [field, item[field]])));
}
