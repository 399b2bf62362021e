import assert from 'node:assert/strict';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { makeCertificate, spawnProcess, temporaryDirectory } from '@weir/testkit';
import { fencedBlocks, readPage } from '../src/docs/markdown.ts';

// Runs `weir translate` on the manifests of a page, as a reader of the page would.
const WEIR_COMMAND = fileURLToPath(new URL('../../packages/cli/bin/weir.js', import.meta.url));

interface TranslateProblem {
  readonly code: string;
  readonly subject: string;
  readonly severity: string;
  readonly message: string;
}

/** Returns the errors that `weir translate` reports for the manifests. Ignores warnings, such as a Service without pods. */
export async function translateErrors(
  manifests: readonly string[],
  ...options: string[]
): Promise<readonly TranslateProblem[]> {
  await using directory = temporaryDirectory('dry-run');
  for (const [index, text] of manifests.entries()) writeFileSync(join(directory.path, `${index}.yaml`), text);
  const run = await spawnProcess({
    command: process.execPath,
    args: [WEIR_COMMAND, 'translate', '-f', directory.path, '--classless', '-o', 'json', ...options],
    mayExit: true,
  });
  const { code } = await run.exited;
  if (code === 2) throw new Error(run.output());
  const { problems } = JSON.parse(run.stdout()) as { readonly problems: readonly TranslateProblem[] };
  return problems.filter(({ severity }) => severity === 'error');
}

// Tests that the manifests of the tenant's pages are valid, and that the reference lists exactly the known annotations.
const manifestsIn = (page: string): string[] => fencedBlocks(readPage(page), 'yaml').map(({ text }) => text);

const annotationsIn = (page: string): string[] =>
  [...page.matchAll(/^\|([^|]+)\|/gm)].flatMap(([, cell = '']) =>
    [...cell.matchAll(/`weir\.dev\/([a-z-]+)`/g)].map(([, name = '']) => name),
  );

const serviceWith = (name: string): string =>
  JSON.stringify({
    apiVersion: 'v1',
    kind: 'Service',
    metadata: { name, namespace: 'shop', annotations: { [`weir.dev/${name}`]: 'x' } },
    spec: { type: 'LoadBalancer', ports: [{ port: 8080 }] },
  });

test('the table lists exactly the known annotations', async () => {
  const [error] = await translateErrors([serviceWith('no-such-annotation')]);
  const [, names = ''] = /this version knows ([a-z, -]+); remove/.exec(error?.message ?? '') ?? [];
  const known = names.split(', ');
  assert.ok(known.length > 20, `only ${known.length} were named`);
  assert.deepEqual(annotationsIn(readPage('docs/annotations.md')).sort(), known.sort());
});

describe('the manifests of the guide are valid', () => {
  const pages = ['docs/tenants.md', 'docs/endpoints.md', 'docs/tls-and-hosts.md', 'docs/udp.md'];
  const services = pages.flatMap(manifestsIn);
  const [sharing, standalone] = [true, false].map((isSharing) =>
    services.filter((text) => text.includes('weir.dev/hosts') === isSharing),
  );

  test('translate accepts Services with their own ports, given the Secrets that they name', async () => {
    assert.ok(standalone !== undefined && standalone.length > 4);
    const named = standalone.join('').matchAll(/weir\.dev\/(?:tls|client-ca)-secret: (\S+)/g);
    assert.deepEqual(await translateErrors([...standalone, ...[...named].map(([, name = '']) => secret(name))]), []);
  });

  test('translate accepts Services with a shared port, given a policy that allows their hosts', async () => {
    assert.ok(sharing !== undefined && sharing.length > 0);
    assert.deepEqual(await translateErrors([...sharing, POLICY], '--shared-ports', '80,443'), []);
  });
});

const httpManifests = ['docs/http.md', 'docs/http-requests.md', 'docs/grpc.md'].flatMap(manifestsIn);
const accessLogManifests = manifestsIn('docs/access-log.md');

test('translate accepts all Services of the HTTP pages together, given their Secrets and a policy that allows their hosts', async () => {
  const manifests = httpManifests;
  assert.ok(manifests.length > 4);
  const named = manifests.join('').matchAll(/weir\.dev\/tls-secret: (\S+)/g);
  const secrets = [...named].map(([, name = '']) => secret(name));
  assert.deepEqual(await translateErrors([...manifests, ...secrets, POLICY], '--shared-ports', '80'), []);
});

test('translate accepts the Services of docs/access-log.md', async () => {
  assert.equal(accessLogManifests.length, 1);
  assert.deepEqual(await translateErrors(accessLogManifests), []);
});

test('translate accepts docs/http, whose port is shared', async () => {
  const manifests = readPage('docs/http/store.yaml');
  assert.deepEqual(await translateErrors([manifests], '--shared-ports', '8080'), []);
});

test('every Service of the HTTP pages has a port where the proxies read HTTP requests', () => {
  for (const text of [...httpManifests, ...accessLogManifests])
    assert.match(text, /appProtocol: (?:http|kubernetes\.io\/ws|grpc) \}/);
});

test('translate accepts the Services of docs/https.md, given the Secrets that they name', async () => {
  const services = manifestsIn('docs/https.md');
  assert.equal(services.length, 3);
  const named = services.join('').matchAll(/weir\.dev\/(?:tls-secret|backend-tls-ca): (.+)/g);
  const secrets = [...new Set([...named].flatMap(([, names = '']) => names.split(', ')))].map(secret);
  for (const text of services) assert.deepEqual(await translateErrors([text, ...secrets]), []);
});

const POLICY = `apiVersion: weir.dev/v1alpha1
kind: TenantPolicy
metadata: { name: shop }
spec: { allowedHosts: ["*.shop.example.com"] }
`;

function secret(name: string): string {
  const { certificate: cert, key } = makeCertificate({ name: 'www.shop.example.com' });
  const stringData = {
    'tls.crt': cert,
    'tls.key': key,
    'ca.crt': makeCertificate({ name: 'CA', isAuthority: true }).certificate,
  };
  return JSON.stringify({ apiVersion: 'v1', kind: 'Secret', metadata: { name, namespace: 'shop' }, stringData });
}
