// Tests TLS to the endpoints, from the manifests to the answer that a client gets.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { TLSSocket } from 'node:tls';
import { eventually, makeCertificate } from '@weir/testkit';
import { manifestDirectory, secret } from '../fixtures/manifests.ts';
import { startTestStandalone } from '../fixtures/standalone.ts';
import { startTlsPod } from '../fixtures/tls-pod.ts';

test('encrypts requests to the endpoints again, and follows a changed Secret with their CAs', async () => {
  await using files = manifestDirectory();
  await using pod = await startTlsPod((_request, response) => response.end('from the pod'));
  const other = makeCertificate({ name: 'other', isAuthority: true }).certificate;
  const own = pod.authority.certificate;
  files.write('shop.yaml', ...pod.manifests({ 'weir.dev/hsts-max-age': '60' }));
  files.write('pods.yaml', secret('pods', { 'ca.crt': own }));
  await using _fleet = await startTestStandalone(files);
  const good = { status: 200, hsts: 'max-age=60', body: 'from the pod' };
  assert.deepEqual(await pod.ask(), good);
  files.write('pods.yaml', secret('pods', { 'ca.crt': other }));
  await eventually(async () => assert.equal((await pod.ask()).status, 502));
  files.write('pods.yaml', secret('pods', { 'ca.crt': other + own }));
  await eventually(async () => assert.deepEqual(await pod.ask(), good));
});

test('presents a certificate to pods that demand one, and follows the changed Secret', async () => {
  await using files = manifestDirectory();
  const proxiesTrust = makeCertificate({ name: 'proxies', isAuthority: true });
  await using pod = await startTlsPod(
    ({ socket }, response) => response.end((socket as TLSSocket).getPeerCertificate().subject.CN),
    { ca: proxiesTrust.certificate, requestCert: true, rejectUnauthorized: true },
  );
  files.write(
    'shop.yaml',
    ...pod.manifests({ 'weir.dev/backend-tls-secret': 'proxies' }),
    secret('pods', { 'ca.crt': pod.authority.certificate }),
  );
  const writeCertificate = (name: string): void => {
    const { chain, key } = makeCertificate({ name, issuer: proxiesTrust });
    files.write('proxies.yaml', secret('proxies', { 'tls.crt': chain, 'tls.key': key }));
  };
  writeCertificate('first');
  await using _fleet = await startTestStandalone(files);
  assert.equal((await pod.ask()).body, 'first');
  writeCertificate('second');
  await eventually(async () => assert.equal((await pod.ask()).body, 'second'));
});
