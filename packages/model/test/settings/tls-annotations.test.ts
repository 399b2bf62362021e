import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { type ServicePort, serviceSettingsFor, type TlsTermination } from '@weir/model';
import { port, service } from '../fixtures/snapshot.ts';

type Annotations = Readonly<Record<string, string>>;

const HTTPS = [port(80, { name: 'http' }), port(443, { name: 'https' })];

function read(annotations: Annotations, ports: readonly ServicePort[] = HTTPS): ReturnType<typeof serviceSettingsFor> {
  const prefixed = Object.entries(annotations).map(([name, value]) => [`weir.dev/${name}`, value]);
  return serviceSettingsFor(service('shop/web', { ports, annotations: Object.fromEntries(prefixed) }));
}

function tlsOf(annotations: Annotations, ports?: readonly ServicePort[]): TlsTermination | undefined {
  const parsed = read(annotations, ports);
  assert.ok(parsed.kind === 'settings', parsed.kind === 'invalid' ? parsed.mistakes.join() : '');
  return parsed.settings.tls;
}

function mistakesIn(annotations: Annotations, ports?: readonly ServicePort[]): readonly string[] {
  const parsed = read(annotations, ports);
  assert.equal(parsed.kind, 'invalid');
  return parsed.kind === 'invalid' ? parsed.mistakes : [];
}

describe('weir.dev/tls-secret', () => {
  test('terminates TLS at 443 by default, and nowhere without the annotation', () => {
    assert.equal(tlsOf({}), undefined);
    assert.deepEqual(tlsOf({ 'tls-secret': 'web-tls' }), {
      secret: 'web-tls',
      ports: [{ port: 443, alpn: [] }],
      clientCaSecret: null,
    });
  });

  test('must be the name of a Secret', () => {
    assert.equal(tlsOf({ 'tls-secret': 'a.b-c.9' })?.secret, 'a.b-c.9');
    for (const name of ['', 'Web', 'shop/web-tls', 'a..b', '-a', 'a-', 'a\n', 'a'.repeat(5_000)])
      assert.match(
        mistakesIn({ 'tls-secret': name })[0] ?? '',
        /^annotation weir\.dev\/tls-secret: ".* is not allowed; use the name of a Secret/s,
      );
  });

  test('may name several Secrets, without duplicates', () => {
    const tls = tlsOf({ 'tls-secret': 'ecdsa, rsa,ecdsa , c' });
    assert.equal(tls?.secret, 'ecdsa');
    assert.deepEqual(tls.otherSecrets, ['rsa', 'c']);
    const names = Array.from({ length: 17 }, (_, index) => `s${index}`);
    assert.equal(tlsOf({ 'tls-secret': names.slice(1).join(',') })?.otherSecrets?.length, 15);
    for (const value of [names.join(','), 'a,', ',a', 'a,,b', 'a,B'])
      assert.match(mistakesIn({ 'tls-secret': value })[0] ?? '', /use the name of a Secret .*, or up to 16 names/);
  });

  test('is refused if no port would use the certificate', () => {
    assert.deepEqual(mistakesIn({ 'tls-secret': 'web-tls' }, [port(80), port(8443)]), [
      'annotation weir.dev/tls-secret: "web-tls" is used at no port: by default TLS is terminated at 443/TCP only; name other ports in annotation weir.dev/tls-ports',
    ]);
  });

  test('has no effect on UDP ports', () => {
    assert.deepEqual(mistakesIn({ 'tls-secret': 'web-tls' }, [port(443, { protocol: 'UDP' })]), [
      'annotation weir.dev/tls-secret: "web-tls" can be honoured only for TCP, and the Service has only UDP ports; remove the annotation, or add a TCP port',
    ]);
    assert.deepEqual(tlsOf({ 'tls-secret': 'web-tls' }, [...HTTPS, port(443, { protocol: 'UDP' })])?.ports, [
      { port: 443, alpn: [] },
    ]);
  });

  test('is refused together with tls-passthrough', () => {
    const both = mistakesIn({ 'tls-secret': 'web-tls', 'tls-passthrough': 'true' });
    assert.match(
      both[0] ?? '',
      /cannot be honoured together with weir\.dev\/tls-passthrough: "true".* remove one of them/,
    );
    assert.ok(tlsOf({ 'tls-secret': 'web-tls', 'tls-passthrough': 'false' }));
  });

  test('allows hosts', () => {
    const parsed = read({ 'tls-secret': 'web-tls', hosts: 'shop.example.com' });
    assert.deepEqual(parsed.kind === 'settings' && parsed.settings.hosts, ['shop.example.com']);
  });

  test('negotiates the ALPN of the port’s appProtocol', () => {
    const alpnOf = (appProtocol: string | null) =>
      tlsOf({ 'tls-secret': 's' }, [port(443, { appProtocol })])?.ports[0]?.alpn;
    assert.deepEqual(alpnOf('http'), ['h2', 'http/1.1']);
    assert.deepEqual(alpnOf('kubernetes.io/ws'), ['h2', 'http/1.1']);
    assert.deepEqual(alpnOf('kubernetes.io/h2c'), ['h2', 'http/1.1']);
    assert.deepEqual(alpnOf('grpc'), ['h2', 'http/1.1']);
    for (const other of [null, 'postgresql', 'constructor', '']) assert.deepEqual(alpnOf(other), [], String(other));
  });

  test('is refused at ports whose pods expect TLS, without CAs', () => {
    for (const appProtocol of ['https', 'kubernetes.io/wss']) {
      const [mistake] = mistakesIn({ 'tls-secret': 's' }, [port(8443, { appProtocol })]);
      assert.match(
        mistake ?? '',
        /^annotation weir\.dev\/tls-secret: TLS cannot be terminated at port 8443\/TCP, because appProtocol/,
      );
    }
  });
});

describe('weir.dev/backend-tls-ca', () => {
  const BACKEND = { 'tls-secret': 's', 'backend-tls-ca': 'pods', 'backend-tls-server-name': 'shop.internal' };
  const encrypted = port(8443, { name: 'pods', appProtocol: 'https' });
  const webSocket = port(9443, { name: 'ws', appProtocol: 'kubernetes.io/wss' });

  test('encrypts HTTP to the pods again at ports with https and kubernetes.io/wss', () => {
    const parsed = read(BACKEND, [...HTTPS, encrypted, webSocket]);
    assert.ok(parsed.kind === 'settings');
    const { tls, httpPorts } = parsed.settings;
    assert.deepEqual(tls?.backend, { caSecret: 'pods', serverName: 'shop.internal', ports: [8443, 9443] });
    assert.deepEqual(httpPorts, [8443, 9443]);
    assert.deepEqual(tls.ports.at(-1), { port: 9443, alpn: ['h2', 'http/1.1'] });
  });

  test('concerns only ports where TLS is terminated', () => {
    const parsed = read({ ...BACKEND, 'tls-ports': 'pods' }, [...HTTPS, encrypted, webSocket]);
    assert.ok(parsed.kind === 'settings');
    assert.deepEqual(parsed.settings.tls?.backend?.ports, [8443]);
    assert.deepEqual(parsed.settings.httpPorts, [8443]);
    const without = read({}, [encrypted]);
    assert.equal(without.kind === 'settings' && without.settings.httpPorts, undefined);
  });

  test('is refused without a server name, without such a port, and with an invalid name', () => {
    assert.deepEqual(mistakesIn({ 'tls-secret': 's', 'backend-tls-ca': 'pods' }, [encrypted]), [
      'annotation weir.dev/backend-tls-ca: "pods" can be honoured only with weir.dev/backend-tls-server-name; add that annotation with the name in the certificates of the pods',
    ]);
    assert.match(
      mistakesIn(BACKEND)[0] ?? '',
      /backend-tls-ca: "pods" is used at no port: TLS is terminated at no port with/,
    );
    for (const name of ['', '10.0.0.1', '*.internal', 'Shop'])
      assert.match(
        mistakesIn({ ...BACKEND, 'backend-tls-server-name': name }, [encrypted])[0] ?? '',
        /backend-tls-server-name: ".*" is not allowed; use a DNS name in lower case/,
      );
    assert.match(
      mistakesIn({ 'tls-secret': 's', 'backend-tls-server-name': 'a' })[0] ?? '',
      /backend-tls-server-name: "a" can be honoured only with a valid weir\.dev\/backend-tls-ca/,
    );
  });
});

describe('weir.dev/backend-tls-secret', () => {
  const BACKEND = { 'tls-secret': 's', 'backend-tls-ca': 'pods', 'backend-tls-server-name': 'shop.internal' };
  const encrypted = port(8443, { name: 'pods', appProtocol: 'https' });

  test('names the certificate that the pods get', () => {
    const parsed = read({ ...BACKEND, 'backend-tls-secret': 'proxies' }, [encrypted]);
    assert.ok(parsed.kind === 'settings');
    assert.deepEqual(parsed.settings.tls?.backend, {
      caSecret: 'pods',
      certificateSecret: 'proxies',
      serverName: 'shop.internal',
      ports: [8443],
    });
  });

  test('is refused with an invalid name, and without CAs', () => {
    assert.match(
      mistakesIn({ ...BACKEND, 'backend-tls-secret': 'a,b' }, [encrypted])[0] ?? '',
      /backend-tls-secret: "a,b" is not allowed; use the name of a Secret in the namespace of the Service/,
    );
    assert.match(
      mistakesIn({ 'tls-secret': 's', 'backend-tls-secret': 'proxies' })[0] ?? '',
      /backend-tls-secret: "proxies" can be honoured only with a valid weir\.dev\/backend-tls-ca/,
    );
  });
});

describe('weir.dev/tls-ports', () => {
  const ports = [...HTTPS, port(8443, { name: 'admin' }), port(53, { name: 'dns', protocol: 'UDP' })];
  const portsOf = (value: string) =>
    tlsOf({ 'tls-secret': 's', 'tls-ports': value }, ports)?.ports.map(({ port: number }) => number);

  test('selects ports by number or name, without duplicates', () => {
    assert.deepEqual(portsOf('8443'), [8443]);
    assert.deepEqual(portsOf('admin, 443 ,8443'), [443, 8443]);
  });

  test('accepts only TCP ports of the Service other than 80', () => {
    const wrong = (value: string) => mistakesIn({ 'tls-secret': 's', 'tls-ports': value }, ports);
    assert.deepEqual(wrong('444'), [
      'annotation weir.dev/tls-ports: "444" is neither the number nor the name of a TCP port of the Service; use 443 (https), 8443 (admin), comma separated',
    ]);
    assert.match(
      mistakesIn({ 'tls-secret': 's', 'tls-ports': '444' }, [port(80)])[0] ?? '',
      /TCP port of the Service; the Service has no port at which TLS can be terminated$/,
    );
    assert.equal(wrong('443,').length, 1, 'an empty part is a mistake');
    assert.equal(wrong('').length, 1);
    assert.match(wrong('dns')[0] ?? '', /"dns" is neither the number nor the name of a TCP port of the Service/);
    assert.match(
      wrong('http')[0] ?? '',
      /^annotation weir\.dev\/tls-ports: "http" is not allowed: port 80 is plain HTTP/,
    );
    assert.equal(wrong('444, 80, 445').length, 3, 'all mistakes at once');
  });

  test('is refused as a whole if the list is too long', () => {
    const value = Array.from({ length: 60_000 }, (_, i) => `p${i}`).join();
    assert.deepEqual(mistakesIn({ 'tls-secret': 's', 'tls-ports': value }, ports), [
      'annotation weir.dev/tls-ports: 60000 ports are too many: at most 200 are read; name each port of the Service once',
    ]);
  });

  test('and client-ca-secret are refused without tls-secret', () => {
    for (const name of ['tls-ports', 'client-ca-secret'])
      assert.match(
        mistakesIn({ [name]: '443' })[0] ?? '',
        /can be honoured only with weir\.dev\/tls-secret; add that annotation/,
      );
  });
});

test('weir.dev/client-ca-secret sets the Secret with the CAs of client certificates', () => {
  assert.equal(tlsOf({ 'tls-secret': 's', 'client-ca-secret': 'clients' })?.clientCaSecret, 'clients');
  assert.match(
    mistakesIn({ 'tls-secret': 's', 'client-ca-secret': 'A' })[0] ?? '',
    /client-ca-secret: "A" is not allowed/,
  );
});
