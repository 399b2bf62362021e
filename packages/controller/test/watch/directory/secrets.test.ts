import assert from 'node:assert/strict';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import { Sealer, Secret, systemClock } from '@weir/runtime';
import { type Certificate, makeCertificate, temporaryDirectory } from '@weir/testkit';
import { type DirectorySource, openDirectorySource } from '../../../src/watch/directory/directory-source.ts';

const fleetSecret = new Secret('a secret of this fleet, long enough');

function manifest({ chain, key }: Certificate): string {
  const stringData = { 'tls.crt': chain, 'tls.key': key };
  return JSON.stringify({ apiVersion: 'v1', kind: 'Secret', metadata: { name: 'tls', namespace: 'shop' }, stringData });
}

interface Directory {
  readonly source: DirectorySource;
  write(text: string): void;
}

async function openDirectory(
  context: TestContext,
  text: string,
  more: { readonly fleetSecret?: Secret } = { fleetSecret },
): Promise<Directory> {
  const directory = temporaryDirectory('secrets');
  const write = (text: string): void => writeFileSync(join(directory.path, 'all.yaml'), text);
  write(text);
  const source = await openDirectorySource({ paths: [directory.path], clock: systemClock, ...more });
  context.after(async () => {
    await source.close();
    await directory.close();
  });
  return { source, write };
}

function certificateIn(source: DirectorySource): unknown {
  const [secret] = source.snapshot().secrets ?? [];
  const certificate = secret?.certificate;
  return certificate?.kind === 'unusable' ? certificate.why : certificate?.chain;
}

/** Resolves when the snapshot of the source changes. */
const nextChange = (source: DirectorySource): Promise<unknown> =>
  new Promise((resolve) => {
    const unsubscribe = source.onChange(() => resolve(unsubscribe()));
  });

test('reads and seals a Secret in a file, and reads it again after an edit', async (context) => {
  const [first, second] = [makeCertificate({ name: 'first' }), makeCertificate({ name: 'second' })];
  const { source, write } = await openDirectory(context, manifest(first));
  assert.equal(certificateIn(source), first.chain);
  const certificate = source.snapshot().secrets?.[0]?.certificate;
  assert.equal(certificate?.kind, 'good');
  assert.equal(new Sealer(fleetSecret).open(certificate.sealedKey, certificate.keyDigest), first.key);
  let change = nextChange(source);
  write(manifest(second));
  await change;
  assert.equal(certificateIn(source), second.chain);
  change = nextChange(source);
  write(manifest({ ...second, key: first.key }));
  await change;
  assert.equal(certificateIn(source), 'has a tls.key that does not belong to its tls.crt');
});

test('counts Secrets without reading them if there is no fleet secret', async (context) => {
  const { source } = await openDirectory(context, manifest(makeCertificate({ name: 'a' })), {});
  assert.equal(source.snapshot().secrets, undefined);
  assert.deepEqual([...source.ignoredKinds()], [['Secret', 1]]);
});

const PRIVATE = 'MIIEvQIBADANBgkqhkiG9w0BAQEFAASCBKcwggSjAgEAAoIBAQC7';
const BROKEN = [
  `data:\n  tls.key: |${PRIVATE}\n    x`,
  `data:\n  tls.key: *${PRIVATE}\n`,
  `data:\n  tls.key: !${PRIVATE} x\n`,
  `data:\n  tls.key: "x" ${PRIVATE}\n`,
  `%${PRIVATE}\n---\na: 1\n`,
  `a: 1\n} ${PRIVATE}`,
  `- ${PRIVATE}`,
  `apiVersion: v1\nkind: Secret\nmetadata: {name: tls}\ndata: ${PRIVATE}\n`,
  `apiVersion: v1\nkind: Secret\nmetadata: {name: tls}\ndata: {tls.key: [${PRIVATE}]}\n`,
];

test('shows nothing of a private key in problems, whatever mistake the file has', async (context) => {
  for (const text of BROKEN) {
    const { source } = await openDirectory(context, text);
    const { problems, secrets = [] } = source.snapshot();
    assert.equal(problems.length + secrets.length, 1, text);
    assert.doesNotMatch(JSON.stringify({ problems, secrets }), new RegExp(PRIVATE.slice(0, 8)), text);
  }
});
