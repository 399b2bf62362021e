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

const UNREACHABLE_AFTER_MS = 10_000;

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

/** Opens a source on files with the endpoints 10.0.0.1 and 10.0.0.2. */
async function open(
  context: TestContext,
  { api = new ScriptedApi(), cachePath }: { api?: ScriptedApi; cachePath?: string } = {},
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

describe('live endpoints of a Service in files', () => {
  test('come from the files at first, then from the API server once it answers', async (context) => {
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

  test('are requested only for load balancer Services', async (context) => {
    const { api, files, clock } = await open(context);
    files.set({ services: [SERVICE, serviceOf('other', 'ClusterIP')] });
    await clock.advance(0);
    const path = '/apis/discovery.k8s.io/v1/namespaces/default/endpointslices';
    assert.deepEqual([...api.requestedPaths], [`${path}?kubernetes.io/service-name=kubernetes`]);
  });

  test('do not change after a list without a ready endpoint, which is reported as a problem', async (context) => {
    const { api, source, clock } = await open(context);
    await clock.advance(0);
    assert.deepEqual(addresses(source), ['10.0.0.1', '10.0.0.2']);
    assert.match(
      problems(source)[0] ?? '',
      /^EndpointsNotRefined Service default\/kubernetes: .*no ready endpoint; until it lists such an endpoint, the endpoints in the files are used/,
    );
    api.setSlices(slice(['10.0.0.3']));
    assert.deepEqual([addresses(source), problems(source)], [['10.0.0.3'], []]);
    api.setSlices(slice(['10.0.0.3'], { ready: false }));
    assert.deepEqual(addresses(source), ['10.0.0.3']);
    assert.match(
      problems(source)[0] ?? '',
      /until it lists such an endpoint, the endpoints last read from the API server stay in use/,
    );
    api.setSlices();
    assert.deepEqual(addresses(source), ['10.0.0.3']);
  });

  test('come from the files if the port names differ, with a problem that has the names', async (context) => {
    const { api, source } = await open(context);
    api.setSlices(slice(['10.0.0.3'], { port: 'secure' }));
    await eventually(() =>
      assert.match(problems(source)[0] ?? '', /no endpoint for port 7443 "https", only for port "secure"/),
    );
    assert.deepEqual(addresses(source), ['10.0.0.1', '10.0.0.2']);
  });

  test('stay when the API server becomes unreachable, with a problem after ten seconds', async (context) => {
    const { api, source, clock } = await open(context);
    api.setSlices(slice(['10.0.0.3']));
    await clock.advance(0);
    api.failWith(AWAY);
    await clock.advance(UNREACHABLE_AFTER_MS - 1);
    assert.deepEqual([addresses(source), problems(source)], [['10.0.0.3'], []]);
    await clock.advance(1);
    assert.deepEqual(addresses(source), ['10.0.0.1', '10.0.0.2', '10.0.0.3']);
    assert.match(
      problems(source)[0] ?? '',
      /does not answer; until the endpoints can be read, the endpoints last read from the API server stay in use, together with those in the files. Check that the API servers run/,
    );
  });

  test('keep the message of the problem while attempts fail in different ways', async (context) => {
    const { api, source, clock } = await open(context);
    api.setSlices(slice(['10.0.0.3']));
    await clock.advance(0);
    api.failWith(AWAY);
    await clock.advance(UNREACHABLE_AFTER_MS);
    const reported = problems(source);
    api.failWith(new KubeApiError('AWAY', 'another message'));
    await clock.advance(60_000);
    assert.deepEqual(problems(source), reported);
    await clock.advance(300_000);
    assert.match(problems(source)[0] ?? '', /another message/);
  });

  test('are used together with the endpoints in the files if they make the API server unreachable, until its list changes', async (context) => {
    const { api, source, clock } = await open(context);
    api.setSlices(slice(['10.9.9.9']));
    await clock.advance(0);
    api.failWith(AWAY);
    await clock.advance(UNREACHABLE_AFTER_MS);
    // The API server is reachable over the endpoints in the files, and lists the same wrong endpoint.
    api.recover();
    await clock.advance(60_000);
    assert.deepEqual([addresses(source), problems(source)], [['10.0.0.1', '10.0.0.2', '10.9.9.9'], []]);
    api.setSlices(slice(['10.0.0.1']));
    assert.deepEqual(addresses(source), ['10.0.0.1']);
  });

  test('come from the files while the API server refuses, with a problem that has the fix', async (context) => {
    const api = new ScriptedApi();
    api.failWith(new KubeApiError('FORBIDDEN', 'User "x" cannot list resource "endpointslices"'));
    const { source, clock } = await open(context, { api });
    await clock.advance(0);
    assert.deepEqual(addresses(source), ['10.0.0.1', '10.0.0.2']);
    assert.match(
      problems(source)[0] ?? '',
      /User "x" cannot list.* Grant the permissions get, list and watch on endpointslices.discovery.k8s.io in namespace default to the user in the kubeconfig that --kubeconfig names$/,
    );
    api.setSlices(slice(['10.0.0.3']));
    api.recover();
    await clock.advance(UNREACHABLE_AFTER_MS);
    assert.deepEqual([addresses(source), problems(source)], [['10.0.0.3'], []]);
  });

  test('are watched as long as their Service is in the files', async (context) => {
    const { api, files, source, clock } = await open(context);
    api.setSlices(slice(['10.0.0.3']));
    await clock.advance(0);
    files.set({ services: [], slices: [] });
    assert.deepEqual(addresses(source), []);
    files.set({ services: [SERVICE], slices: [] });
    await clock.advance(0);
    assert.deepEqual(addresses(source), ['10.0.0.3']);
  });

  test('are the cached endpoints and the endpoints in the files for a Service that returns', async (context) => {
    const { api, files, source, clock } = await open(context);
    api.setSlices(slice(['10.0.0.3']));
    await clock.advance(0);
    const { services, slices } = files.snapshot();
    for (const attempt of ['after a live list', 'after cached slices']) {
      files.set({ services: [], slices: [] });
      api.failWith(AWAY);
      files.set({ services, slices });
      await clock.advance(UNREACHABLE_AFTER_MS);
      assert.deepEqual(addresses(source), ['10.0.0.1', '10.0.0.2', '10.0.0.3'], attempt);
    }
    api.recover();
    await clock.advance(60_000);
    assert.deepEqual(addresses(source), ['10.0.0.3']);
  });
});

describe('cached endpoints', () => {
  const cachePathIn = (context: TestContext): string => {
    const directory = temporaryDirectory('cache');
    context.after(() => directory.close());
    return join(directory.path, 'state', 'endpoints.json');
  };

  test('are used with the files after a restart until the API server answers', async (context) => {
    const cachePath = cachePathIn(context);
    const before = await open(context, { cachePath });
    before.api.setSlices(slice(['10.0.0.3']));
    await before.clock.advance(0);
    await before.source.close();
    const api = new ScriptedApi();
    api.failWith(AWAY);
    const { source, clock } = await open(context, { api, cachePath });
    assert.deepEqual(addresses(source), ['10.0.0.1', '10.0.0.2', '10.0.0.3']);
    api.setSlices(slice(['10.0.0.4']));
    api.recover();
    await clock.advance(UNREACHABLE_AFTER_MS);
    assert.deepEqual(addresses(source), ['10.0.0.4']);
  });

  test('are not used alone after a restart if they make the API server unreachable', async (context) => {
    const cachePath = cachePathIn(context);
    const before = await open(context, { cachePath });
    before.api.setSlices(slice(['10.9.9.9']));
    await before.clock.advance(0);
    before.api.failWith(AWAY);
    await before.clock.advance(UNREACHABLE_AFTER_MS);
    await before.source.close();
    const { api, source, clock } = await open(context, { cachePath });
    api.setSlices(slice(['10.9.9.9']));
    await clock.advance(0);
    assert.deepEqual(addresses(source), ['10.0.0.1', '10.0.0.2', '10.9.9.9']);
  });

  test('are ignored if the file is damaged, and written again', async (context) => {
    const cachePath = cachePathIn(context);
    const before = await open(context, { cachePath });
    before.api.setSlices(slice(['10.0.0.3']));
    await eventually(() => assert.ok(existsSync(cachePath)));
    await before.source.close();
    const valid = readFileSync(cachePath, 'utf8');
    for (const damaged of ['', '{', valid.replaceAll('10.0.0.3', 'x'), valid.slice(0, -10), '{"version":2}', 'null']) {
      writeFileSync(cachePath, damaged);
      const { api, source, clock } = await open(context, { cachePath });
      assert.deepEqual(addresses(source), ['10.0.0.1', '10.0.0.2'], damaged);
      api.setSlices(slice(['10.0.0.3']));
      await clock.advance(0);
      await source.close();
      assert.equal(readFileSync(cachePath, 'utf8'), valid);
    }
  });
});
