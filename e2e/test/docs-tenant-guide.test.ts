import assert from 'node:assert/strict';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { makeCertificate, spawnProcess, temporaryDirectory } from '@weir/testkit';
import { fencedBlocks, readPage } from '../src/docs/markdown.ts';

// `weir translate` of manifests that a page shows, as its reader would run it.
const WEIR_COMMAND = fileURLToPath(new URL('../../packages/cli/bin/weir.js', import.meta.url));

interface TranslateProblem {
  readonly code: string;
  readonly subject: string;
  readonly severity: string;
  readonly message: string;
}

/** The errors in these manifests; warnings, such as that there are no pods, are none. */
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

// The tenant's guide: its manifests are accepted as they stand, and its annotations are those that there are.
const PAGE = readPage('docs/tenants.md');
const sectionOf = (heading: string): string => PAGE.split(`\n## ${heading}\n`)[1]?.split('\n## ')[0] ?? '';
const REFUSED = sectionOf('What is not there yet');

const annotationsIn = (section: string): string[] =>
  [...section.matchAll(/^\|([^|]+)\|/gm)].flatMap(([, cell = '']) =>
    [...cell.matchAll(/`weir\.dev\/([a-z-]+)`/g)].map(([, name = '']) => name),
  );

const serviceWith = (name: string): string =>
  JSON.stringify({
    apiVersion: 'v1',
    kind: 'Service',
    metadata: { name, namespace: 'shop', annotations: { [`weir.dev/${name}`]: 'x' } },
    spec: { type: 'LoadBalancer', ports: [{ port: 8080 }] },
  });

test('the table has every annotation that is honoured, and no other', async () => {
  const [told] = await translateErrors([serviceWith('no-such-annotation')]);
  const [, names = ''] = /this version knows ([a-z, -]+); remove/.exec(told?.message ?? '') ?? [];
  const known = names.split(', ');
  assert.ok(known.length > 20, `only ${known.length} were named`);
  assert.deepEqual(annotationsIn(sectionOf('Annotations')).sort(), known.sort());
});

test('each of those that are not there yet is refused', async () => {
  const names = annotationsIn(REFUSED);
  assert.ok(names.length > 5, REFUSED);
  const errors = await translateErrors(names.map((name) => serviceWith(name)));
  for (const name of names) {
    const told = errors.find(({ subject }) => subject === `Service shop/${name}`);
    assert.equal(told?.code, 'InvalidAnnotation', name);
    assert.match(told.message, new RegExp(`annotation weir\\.dev/${name}: .*cannot be honoured: this version knows`));
  }
});

describe('the manifests of the guide are accepted as they stand', () => {
  const blocks = fencedBlocks(PAGE, 'yaml').map(({ text }) => text);
  const services = blocks.filter((text) => /^kind: Service$/m.test(text));
  const [sharing, alone] = [true, false].map((isSharing) =>
    services.filter((text) => text.includes('weir.dev/hosts') === isSharing),
  );

  test('those of a Service by itself, with the Secrets that they name', async () => {
    assert.ok(alone !== undefined && alone.length > 4);
    const named = alone.join('').matchAll(/weir\.dev\/(?:tls|client-ca)-secret: (\S+)/g);
    assert.deepEqual(await translateErrors([...alone, ...[...named].map(([, name = '']) => secret(name))]), []);
  });

  test('those that share a port, where the fleet shares it and their hosts are allowed', async () => {
    assert.ok(sharing !== undefined && sharing.length > 0);
    assert.deepEqual(await translateErrors([...sharing, POLICY], '--shared-ports', '443'), []);
  });
});

const POLICY = `apiVersion: weir.dev/v1alpha1
kind: TenantPolicy
metadata: { name: shop }
spec: { allowedHosts: ["*.shop.example.com"] }
`;

function secret(name: string): string {
  const { certificate: cert, key } = makeCertificate({ name: 'www.shop.example.com' });
  const stringData = { 'tls.crt': cert, 'tls.key': key, 'ca.crt': cert };
  return JSON.stringify({ apiVersion: 'v1', kind: 'Secret', metadata: { name, namespace: 'shop' }, stringData });
}
