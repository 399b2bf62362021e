import assert from 'node:assert/strict';
import { X509Certificate } from 'node:crypto';
import { once } from 'node:events';
import type { AddressInfo } from 'node:net';
import { test } from 'node:test';
import { connect, createServer, type TLSSocket } from 'node:tls';
import { type Certificate, makeCertificate } from '@weir/testkit';

const root = makeCertificate({ name: 'root', isAuthority: true });
const intermediate = makeCertificate({ name: 'between', isAuthority: true, issuer: root });

test('a server with an intermediate and a client authenticate each other with one root', async () => {
  const server = makeCertificate({ name: 'shop.example.com', issuer: intermediate, usage: 'server' });
  const client = makeCertificate({ name: 'a client', issuer: root, usage: 'client', keyType: 'rsa' });
  assert.deepEqual(await handshake({ server, client }), { seenByServer: 'a client', seenByClient: 'shop.example.com' });
});

test('a client rejects a certificate of a different authority with the same name', async () => {
  const imposter = makeCertificate({ name: 'root', isAuthority: true });
  const server = makeCertificate({ name: 'shop.example.com', issuer: imposter });
  await assert.rejects(handshake({ server, client: server }), {
    code: /^(?:UNABLE_TO|CERT_|ERR_SSL|SELF_SIGNED|DEPTH)/,
  });
});

test('a certificate has the requested names, addresses, times and key', () => {
  const notBefore = new Date('2021-02-03T04:05:06Z');
  const notAfter = new Date('2051-12-31T23:59:59Z');
  const names = ['*.example.com', '192.0.2.7', '2001:db8::7'];
  const made = makeCertificate({ name: 'x', names, notBefore, notAfter, keyType: 'rsa', rsaBits: 1024 });
  const certificate = new X509Certificate(made.certificate);
  assert.deepEqual([certificate.validFromDate, certificate.validToDate], [notBefore, notAfter]);
  assert.equal(certificate.checkHost('a.example.com'), '*.example.com');
  assert.equal(certificate.checkIP('192.0.2.7'), '192.0.2.7');
  assert.equal(certificate.checkIP('2001:db8::7'), '2001:db8::7');
  assert.equal(certificate.publicKey.asymmetricKeyDetails?.modulusLength, 1024);
  assert.ok(certificate.checkPrivateKey(made.privateKey));
  assert.equal(certificate.ca, false);
  assert.ok(certificate.verify(made.publicKey), 'signed by its own key');
  assert.ok(new X509Certificate(intermediate.certificate).checkIssued(new X509Certificate(root.certificate)));
});

interface Handshake {
  readonly server: Certificate;
  readonly client: Certificate;
}

async function handshake({ server, client }: Handshake): Promise<{ seenByServer: unknown; seenByClient: unknown }> {
  const ca = root.certificate;
  const listener = createServer({ cert: server.chain, key: server.key, ca, requestCert: true });
  listener.on('tlsClientError', () => undefined);
  await once(listener.listen(0, '127.0.0.1'), 'listening');
  const { port } = listener.address() as AddressInfo;
  const accepted = new Promise<TLSSocket>((resolve) => listener.once('secureConnection', resolve));
  const socket = connect({ port, host: '127.0.0.1', servername: server.name, ca, cert: client.chain, key: client.key });
  try {
    await once(socket, 'secureConnect');
    const other = await accepted;
    const seen = {
      seenByServer: other.getPeerCertificate().subject.CN,
      seenByClient: socket.getPeerCertificate().subject.CN,
    };
    other.destroy();
    return seen;
  } finally {
    socket.destroy();
    await new Promise((resolve) => listener.close(resolve));
  }
}
