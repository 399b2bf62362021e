import assert from 'node:assert/strict';
import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, type TestContext, test } from 'node:test';
import { ManualClock, silentLogger } from '@weir/runtime';
import { eventually, temporaryDirectory } from '@weir/testkit';
import type { Json } from '../../../src/kubernetes/kube-api.ts';
import { KubeApiError } from '../../../src/kubernetes/kube-api-error.ts';
import { parseEndpointSlice } from '../../../src/parse/endpoint-slice.ts';
import { parseService } from '../../../src/parse/service.ts';
import {
  type LiveEndpointsSource,
  openLiveEndpointsSource,
} from '../../../src/watch/live-endpoints/live-endpoints-source.ts';
import { FakeSource } from '../../fixtures/fake-source.ts';
import { AWAY, ScriptedApi } from '../../fixtures/scripted-api.ts';

const PATIENCE_MS = 10_000;

const slice = (
  addresses: readonly string[],
  { name = 'kubernetes', port = 'https', ready = true }: { name?: string; port?: string; ready?: boolean } = {},
): Json => ({
  metadata: { uid: name, name, namespace: 'default', labels: { 'kubernetes.io/service-name': 'kubernetes' } },
  addressType: 'IPv4',
  ports: [{ name: port, port: 6443, protocol: 'TCP' }],
  endpoints: addresses.map((address) => ({ addresses: [address], conditions: { ready } })),
});

const serviceOf = (name: string, type = 'LoadBalancer') => {
  const metadata = { uid: name, name, namespace: 'default' };
  const { object } = parseService({ metadata, spec: { type, ports: [{ name: 'https', port: 7443 }] } });
  assert.ok(object);
  return object;
};

const SERVICE = serviceOf('kubernetes');

const sliceObject = (...args: Parameters<typeof slice>) => {
  const { object } = parseEndpointSlice(slice(...args));
  assert.ok(object);
  return object;
};

/** Files that name 10.0.0.1 and 10.0.0.2. */
async function open(
  context: TestContext,
  { api = new ScriptedApi(), keptIn: cachePath }: { api?: ScriptedApi; keptIn?: string } = {},
) {
  const files = new FakeSource({ services: [SERVICE], slices: [sliceObject(['10.0.0.1', '10.0.0.2'])] });
  const clock = new ManualClock();
  const source = await openLiveEndpointsSource({ files, api, cachePath, clock, log: silentLogger() });
  context.after(() => source.close());
  return { api, files, clock, source };
}

function addresses(source: LiveEndpointsSource): readonly string[] {
  const all = source.snapshot().slices.flatMap((each) => each.endpoints.flatMap((endpoint) => endpoint.addresses));
  return [...new Set(all)].sort();
}

function problems(source: LiveEndpointsSource): readonly string[] {
  return source.snapshot().problems.map(({ code, subject, message }) => `${code} ${subject}: ${message}`);
}

describe('the endpoints of a Service of the files', () => {
  test('are those of the files at once, and those of the API server when it has answered', async (context) => {
    const api = new ScriptedApi();
    api.setSlices(slice(['10.0.0.2', '10.0.0.3']));
    api.failWith(AWAY);
    const { source, clock } = await open(context, { api });
    assert.deepEqual(addresses(source), ['10.0.0.1', '10.0.0.2']);
    api.recover();
    await clock.advance(1_000);
    assert.deepEqual(addresses(source), ['10.0.0.2', '10.0.0.3']);
    api.setSlices(slice(['10.0.0.3']));
    assert.deepEqual(addresses(source), ['10.0.0.3']);
    assert.deepEqual(problems(source), []);
  });

  test('are all that is asked for, and only of Services that are served', async (context) => {
    const { api, files, clock } = await open(context);
    files.set({ services: [SERVICE, serviceOf('other', 'ClusterIP')] });
    await clock.advance(0);
    const path = '/apis/discovery.k8s.io/v1/namespaces/default/endpointslices';
    assert.deepEqual([...api.requestedPaths], [`${path}?kubernetes.io/service-name=kubernetes`]);
  });

  test('are never none: a list without a ready endpoint takes nothing away, and is told', async (context) => {
    const { api, source, clock } = await open(context);
    await clock.advance(0);
    assert.deepEqual(addresses(source), ['10.0.0.1', '10.0.0.2']);
    assert.match(
      problems(source)[0] ?? '',
      /^EndpointsNotRefined Service default\/kubernetes: .*no ready endpoint; until then the endpoints in the files are used/,
    );
    api.setSlices(slice(['10.0.0.3']));
    assert.deepEqual([addresses(source), problems(source)], [['10.0.0.3'], []]);
    api.setSlices(slice(['10.0.0.3'], { ready: false }));
    assert.deepEqual(addresses(source), ['10.0.0.3']);
    assert.match(problems(source)[0] ?? '', /until then the endpoints that the API server had last are used/);
    api.setSlices();
    assert.deepEqual(addresses(source), ['10.0.0.3']);
  });

  test('whose port has another name there stay those of the files, and the names are told', async (context) => {
    const { api, source } = await open(context);
    api.setSlices(slice(['10.0.0.3'], { port: 'secure' }));
    await eventually(() =>
      assert.match(problems(source)[0] ?? '', /no endpoint for port 7443 "https", only for "secure"/),
    );
    assert.deepEqual(addresses(source), ['10.0.0.1', '10.0.0.2']);
  });

  test('stay when the API server goes away, which is told only when it stays away', async (context) => {
    const { api, source, clock } = await open(context);
    api.setSlices(slice(['10.0.0.3']));
    await clock.advance(0);
    api.failWith(AWAY);
    await clock.advance(PATIENCE_MS - 1);
    assert.deepEqual([addresses(source), problems(source)], [['10.0.0.3'], []]);
    await clock.advance(1);
    assert.deepEqual(addresses(source), ['10.0.0.1', '10.0.0.2', '10.0.0.3']);
    assert.match(
      problems(source)[0] ?? '',
      /does not answer; until then the endpoints that the API server had last and the endpoints in the files are used. Check that the API servers run/,
    );
  });

  test('do not make a line of each try while the API server is away', async (context) => {
    const { api, source, clock } = await open(context);
    api.setSlices(slice(['10.0.0.3']));
    await clock.advance(0);
    api.failWith(AWAY);
    await clock.advance(PATIENCE_MS);
    const told = problems(source);
    api.failWith(new KubeApiError('AWAY', 'in other words'));
    await clock.advance(60_000);
    assert.deepEqual(problems(source), told);
    await clock.advance(300_000);
    assert.match(problems(source)[0] ?? '', /in other words/);
  });

  test('that cut us off are joined by those of the files, until the API server says something else', async (context) => {
    const { api, source, clock } = await open(context);
    api.setSlices(slice(['10.9.9.9']));
    await clock.advance(0);
    api.failWith(AWAY);
    await clock.advance(PATIENCE_MS);
    // Reached over those of the files it says the same again.
    api.recover();
    await clock.advance(60_000);
    assert.deepEqual([addresses(source), problems(source)], [['10.0.0.1', '10.0.0.2', '10.9.9.9'], []]);
    api.setSlices(slice(['10.0.0.1']));
    assert.deepEqual(addresses(source), ['10.0.0.1']);
  });

  test('are those of the files while the API server refuses, which is told at once, with what to do', async (context) => {
    const api = new ScriptedApi();
    api.failWith(new KubeApiError('FORBIDDEN', 'User "x" cannot list resource "endpointslices"'));
    const { source, clock } = await open(context, { api });
    await clock.advance(0);
    assert.deepEqual(addresses(source), ['10.0.0.1', '10.0.0.2']);
    assert.match(
      problems(source)[0] ?? '',
      /User "x" cannot list.* Grant the user of --kubeconfig get, list and watch of endpointslices.discovery.k8s.io in namespace default$/,
    );
    api.setSlices(slice(['10.0.0.3']));
    api.recover();
    await clock.advance(PATIENCE_MS);
    assert.deepEqual([addresses(source), problems(source)], [['10.0.0.3'], []]);
  });

  test('follow the files: a Service that is gone is no longer watched, one that comes is', async (context) => {
    const { api, files, source, clock } = await open(context);
    api.setSlices(slice(['10.0.0.3']));
    await clock.advance(0);
    files.set({ services: [], slices: [] });
    assert.deepEqual(addresses(source), []);
    files.set({ services: [SERVICE], slices: [] });
    await clock.advance(0);
    assert.deepEqual(addresses(source), ['10.0.0.3']);
  });

  test('are, of a Service that comes back, what was known when it left, beside those of the files', async (context) => {
    const { api, files, source, clock } = await open(context);
    api.setSlices(slice(['10.0.0.3']));
    await clock.advance(0);
    const { services, slices } = files.snapshot();
    for (const kind of ['read by this process', 'not read again meanwhile']) {
      files.set({ services: [], slices: [] });
      api.failWith(AWAY);
      files.set({ services, slices });
      await clock.advance(PATIENCE_MS);
      assert.deepEqual(addresses(source), ['10.0.0.1', '10.0.0.2', '10.0.0.3'], kind);
    }
    api.recover();
    await clock.advance(60_000);
    assert.deepEqual(addresses(source), ['10.0.0.3']);
  });
});

describe('what the API server said last', () => {
  const kept = (context: TestContext): string => {
    const directory = temporaryDirectory('kept');
    context.after(() => directory.close());
    return join(directory.path, 'state', 'endpoints.json');
  };

  test('serves after a restart, beside the files, until the API server is reached again', async (context) => {
    const keptIn = kept(context);
    const before = await open(context, { keptIn });
    before.api.setSlices(slice(['10.0.0.3']));
    await before.clock.advance(0);
    await before.source.close();
    const api = new ScriptedApi();
    api.failWith(AWAY);
    const { source, clock } = await open(context, { api, keptIn });
    assert.deepEqual(addresses(source), ['10.0.0.1', '10.0.0.2', '10.0.0.3']);
    api.setSlices(slice(['10.0.0.4']));
    api.recover();
    await clock.advance(PATIENCE_MS);
    assert.deepEqual(addresses(source), ['10.0.0.4']);
  });

  test('is not trusted alone after a restart when it had cut us off', async (context) => {
    const keptIn = kept(context);
    const before = await open(context, { keptIn });
    before.api.setSlices(slice(['10.9.9.9']));
    await before.clock.advance(0);
    before.api.failWith(AWAY);
    await before.clock.advance(PATIENCE_MS);
    await before.source.close();
    const { api, source, clock } = await open(context, { keptIn });
    api.setSlices(slice(['10.9.9.9']));
    await clock.advance(0);
    assert.deepEqual(addresses(source), ['10.0.0.1', '10.0.0.2', '10.9.9.9']);
  });

  test('is left out when its file is damaged, and written anew', async (context) => {
    const keptIn = kept(context);
    const before = await open(context, { keptIn });
    before.api.setSlices(slice(['10.0.0.3']));
    await eventually(() => assert.ok(existsSync(keptIn)));
    await before.source.close();
    const whole = readFileSync(keptIn, 'utf8');
    for (const damaged of ['', '{', whole.replaceAll('10.0.0.3', 'x'), whole.slice(0, -10), '{"version":2}', 'null']) {
      writeFileSync(keptIn, damaged);
      const { api, source, clock } = await open(context, { keptIn });
      assert.deepEqual(addresses(source), ['10.0.0.1', '10.0.0.2'], damaged);
      api.setSlices(slice(['10.0.0.3']));
      await clock.advance(0);
      await source.close();
      assert.equal(readFileSync(keptIn, 'utf8'), whole);
    }
  });
});
