// Tests TLS termination as a user configures it with kubectl: the Secret, the conditions, and the certificate that clients receive.
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { connect as connectTcp } from 'node:net';
import { text } from 'node:stream/consumers';
import { after, before, describe, test } from 'node:test';
import { connect, type TLSSocket } from 'node:tls';
import { type Certificate, type EventuallyOptions, eventually, makeCertificate } from '@weir/testkit';
import { insideNamespace, type Redis, requireProgram } from '@weir/tools';
import { ALL_ADDRESSES, NODES, nodeAddress } from '../src/addresses.ts';
import { assertRefused } from '../src/client-assertions.ts';
import { type Fleet, startFleet } from '../src/fleet.ts';
import { loadBalancer, namespaceManifest } from '../src/manifests.ts';
import { Pods } from '../src/pods.ts';
import { type ServiceWatch, watchServices } from '../src/service-status.ts';

const ADDRESSES = NODES.map(nodeAddress);
const HOST = 'web.shop.example';
const DEFAULT_WAIT: EventuallyOptions = { timeoutMs: 30_000, intervalMs: 200 };
const DAY_MS = 86_400_000;

const requirement = { ...requireProgram('redis', 'kubernetes'), ...insideNamespace({ addresses: ALL_ADDRESSES }) };

describe('TLS termination', { ...requirement, timeout: 240_000 }, () => {
  const ca = makeCertificate({ name: 'shop CA', isAuthority: true });
  const first = makeCertificate({ name: HOST, issuer: ca });
  const renewed = makeCertificate({ name: HOST, issuer: ca });
  let fleet: Fleet;
  let pods: Pods;
  let services: ServiceWatch;
  const kubectl = (...args: string[]): Promise<string> => fleet.cluster.kubectl(...args);
  const apply = (...objects: readonly object[]): Promise<void> => fleet.cluster.apply(...objects);
  const served = (path: string): Promise<void> => services.waitForAddresses(path, ADDRESSES);
  const described = (path: string, event: RegExp): Promise<void> => {
    const [namespace = '', name = ''] = path.split('/');
    return eventually(
      async () => assert.match(await kubectl('describe', 'service', name, '-n', namespace), event),
      DEFAULT_WAIT,
    );
  };
  const web = (path: string, port: number, annotations: Readonly<Record<string, string>>): object =>
    loadBalancer(
      path,
      { selector: { app: 'web' }, allocateLoadBalancerNodePorts: false, ports: [{ port, targetPort: 'main' }] },
      { annotations: { 'weir.dev/tls-ports': String(port), ...annotations } },
    );

  before(async () => {
    fleet = await startFleet({ settings: { WEIR_SECRET_ACCESS: 'namespaces', WEIR_SECRET_NAMESPACES: 'shop' } });
    pods = new Pods(fleet.cluster);
    services = await watchServices(fleet.cluster);
    await apply(namespaceManifest('shop'), namespaceManifest('other'));
    await pods.echo({ namespace: 'shop', name: 'web', labels: { app: 'web' }, number: 1, port: 8080 });
  });
  after(async () => {
    await pods?.close();
    await services?.close();
    await fleet?.close();
  });

  test('SecretNotFound: lasts until the Secret exists, then clients receive its certificate', async () => {
    await apply(web('shop/web', 443, { 'weir.dev/tls-secret': 'web-tls' }));
    const message = await services.waitForCondition('shop/web', 'Accepted', 'False SecretNotFound');
    assert.match(message, /create it: kubectl create secret tls web-tls --cert=FILE --key=FILE -n shop/);
    await described('shop/web', /Warning +SecretNotFound .*"web-tls"/);
    await assertRefused(ADDRESSES, 443);
    await apply(tlsSecret('shop/web-tls', first));
    await services.waitForCondition('shop/web', 'Accepted', 'True Accepted');
    await served('shop/web');
    for (const host of ADDRESSES) await assertEchoedOverTls({ host, port: 443, ca, expected: first });
  });

  test('serves a renewed certificate to new clients and keeps open connections', async () => {
    await using open = await connectTls({ host: ADDRESSES[0] ?? '', port: 443, ca });
    await echo(open, 'before');
    await apply(tlsSecret('shop/web-tls', renewed));
    for (const host of ADDRESSES)
      await eventually(() => assertEchoedOverTls({ host, port: 443, ca, expected: renewed }), DEFAULT_WAIT);
    await echo(open, 'and after');
  });

  test('InvalidCertificate: keeps the last accepted certificate if the key does not match', async () => {
    await apply(tlsSecret('shop/web-tls', { certificate: renewed.chain, key: first.key }));
    const message = await services.waitForCondition('shop/web', 'Accepted', 'False InvalidCertificate');
    assert.match(
      message,
      /Secret "web-tls" .*tls\.key.*; meanwhile the last accepted settings stay in effect, with a certificate that expires on \d{4}-\d\d-\d\d$/,
    );
    assert.ok(!message.includes('PRIVATE'), message);
    await described('shop/web', /Warning +InvalidCertificate/);
    await services.waitForCondition('shop/web', 'Programmed', 'True Programmed');
    for (const host of ADDRESSES) await assertEchoedOverTls({ host, port: 443, ca, expected: renewed });
    await apply(tlsSecret('shop/web-tls', renewed));
    await services.waitForCondition('shop/web', 'Accepted', 'True Accepted');
  });

  test('InvalidCertificate: never serves an expired certificate', async () => {
    const expired = makeCertificate({ name: HOST, issuer: ca, notBefore: daysFromNow(-10), notAfter: daysFromNow(-1) });
    await apply(tlsSecret('shop/old', expired), web('shop/old', 4441, { 'weir.dev/tls-secret': 'old' }));
    assert.match(
      await services.waitForCondition('shop/old', 'Accepted', 'False InvalidCertificate'),
      /expired on \d{4}-\d\d-\d\d/,
    );
    await assertRefused(ADDRESSES, 4441);
  });

  test('CertificateExpiring: serves the certificate and names its last day until it is renewed', async () => {
    const soon = makeCertificate({ name: HOST, issuer: ca, notBefore: daysFromNow(-80), notAfter: daysFromNow(5) });
    await apply(tlsSecret('shop/soon', soon), web('shop/soon', 4442, { 'weir.dev/tls-secret': 'soon' }));
    const until = daysFromNow(5).toISOString().slice(0, 10);
    const message = await services.waitForCondition('shop/soon', 'Degraded', 'True CertificateExpiring');
    assert.ok(message.includes(`Secret "soon" expires on ${until}`), message);
    await described('shop/soon', /Warning +CertificateExpiring/);
    await served('shop/soon');
    for (const host of ADDRESSES) await assertEchoedOverTls({ host, port: 4442, ca, expected: soon });
    await apply(tlsSecret('shop/soon', first));
    await services.waitForNoCondition('shop/soon', 'Degraded');
  });

  test('SecretForbidden: lasts until the operator allows the namespace', async () => {
    await pods.echo({ namespace: 'other', name: 'web', labels: { app: 'web' }, number: 2, port: 8080 });
    await apply(tlsSecret('other/web-tls', first), web('other/web', 4443, { 'weir.dev/tls-secret': 'web-tls' }));
    const message = await services.waitForCondition('other/web', 'Accepted', 'False SecretForbidden');
    assert.match(message, /"other" is not among them; ask the operator to add it to tls\.secretNamespaces/);
    await described('other/web', /Warning +SecretForbidden/);
    await assertRefused(ADDRESSES, 4443);
    await fleet.restartController({ WEIR_SECRET_ACCESS: 'cluster' });
    await services.waitForCondition('other/web', 'Accepted', 'True Accepted');
    for (const host of ADDRESSES)
      await eventually(() => assertEchoedOverTls({ host, port: 4443, ca, expected: first }), DEFAULT_WAIT);
    for (const host of ADDRESSES) await assertEchoedOverTls({ host, port: 443, ca, expected: renewed });
  });

  test('a client CA admits only clients with a certificate of this CA', async () => {
    const client = makeCertificate({ name: 'till 7', issuer: ca, usage: 'client' });
    const stranger = makeCertificate({
      name: 'till 7',
      issuer: makeCertificate({ name: 'other CA', isAuthority: true }),
    });
    await apply(web('shop/tills', 4444, { 'weir.dev/tls-secret': 'web-tls', 'weir.dev/client-ca-secret': 'tills' }));
    await services.waitForCondition('shop/tills', 'Accepted', 'False SecretNotFound');
    await apply(secret('shop/tills', { 'ca.crt': ca.certificate }));
    await served('shop/tills');
    const at = { host: ADDRESSES[1] ?? '', port: 4444, ca };
    await assertEchoedOverTls({ ...at, expected: renewed, client });
    await assert.rejects(assertEchoedOverTls({ ...at, expected: renewed, client: stranger }));
    await assert.rejects(assertEchoedOverTls({ ...at, expected: renewed }));
  });

  test('a deleted Secret keeps its certificate in use, also after restarts of controller and proxy', async () => {
    await kubectl('delete', 'secret', 'web-tls', '-n', 'shop');
    assert.match(
      await services.waitForCondition('shop/web', 'Accepted', 'False SecretNotFound'),
      /meanwhile the last accepted settings stay in effect/,
    );
    await fleet.restartController();
    await fleet.restartProxy('node-1');
    for (const host of ADDRESSES)
      await eventually(() => assertEchoedOverTls({ host, port: 443, ca, expected: renewed }), DEFAULT_WAIT);
    await services.waitForCondition('shop/web', 'Accepted', 'False SecretNotFound');
  });

  test('private keys appear in no table, log or command output', async () => {
    const output = [
      fleet.output(),
      await fleet.weir('explain', 'shop/web'),
      JSON.stringify(await fleet.problems()),
      await redisReplies(
        fleet.redis,
        'HGETALL weir:{e2e}:table',
        'HGETALL weir:{e2e}:keys',
        'XRANGE weir:{e2e}:changes - +',
      ),
    ].join('\n');
    for (const { key } of [first, renewed]) {
      const [, line = ''] = key.split('\n');
      assert.ok(line.length > 40);
      assert.ok(!output.includes(line), 'a private key was found');
    }
    assert.ok(output.includes('certificate/'), 'the table was not found');
  });
});

const daysFromNow = (days: number): Date => new Date(Date.now() + days * DAY_MS);

function tlsSecret(path: string, { certificate, chain, key }: Partial<Certificate> & Pick<Certificate, 'key'>): object {
  return { ...secret(path, { 'tls.crt': chain ?? certificate ?? '', 'tls.key': key }), type: 'kubernetes.io/tls' };
}

function secret(path: string, stringData: Readonly<Record<string, string>>): object {
  const [namespace, name] = path.split('/');
  return { apiVersion: 'v1', kind: 'Secret', metadata: { namespace, name }, stringData };
}

/** Sends commands to Redis as plain text (inline commands) and returns the raw replies. */
async function redisReplies({ host, port }: Redis, ...commands: readonly string[]): Promise<string> {
  const socket = connectTcp({ host, port });
  socket.end([...commands, 'QUIT', ''].join('\r\n'));
  return text(socket);
}

interface TlsClient {
  readonly host: string;
  readonly port: number;
  readonly ca: Certificate;
  readonly client?: Certificate;
}

async function connectTls({ host, port, ca, client }: TlsClient): Promise<TLSSocket & AsyncDisposable> {
  const own = client === undefined ? {} : { cert: client.chain, key: client.key };
  const socket = connect({ host, port, ca: ca.certificate, servername: HOST, ...own });
  await once(socket, 'secureConnect', { signal: AbortSignal.timeout(10_000) });
  return Object.assign(socket, {
    [Symbol.asyncDispose]: async () => {
      socket.destroy();
    },
  });
}

/** Asserts that a TLS client accepts the server, receives the expected certificate, and reaches the pod. */
async function assertEchoedOverTls({
  expected,
  ...client
}: TlsClient & { readonly expected: Certificate }): Promise<void> {
  await using socket = await connectTls(client);
  await echo(socket, 'hello');
  assert.equal(socket.getPeerX509Certificate()?.publicKey.equals(expected.publicKey), true);
}

async function echo(socket: TLSSocket, word: string): Promise<void> {
  socket.write(word);
  let received = '';
  while (received.length < word.length) {
    const [chunk] = await once(socket, 'data', { signal: AbortSignal.timeout(10_000) });
    received += chunk;
  }
  assert.equal(received, word);
}
