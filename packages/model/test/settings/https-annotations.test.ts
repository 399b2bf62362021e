import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { type ServicePort, type ServiceSettings, serviceSettingsFor } from '@weir/model';
import { port, service } from '../fixtures/snapshot.ts';

type Annotations = Readonly<Record<string, string>>;

const HTTPS = port(443, { name: 'https', appProtocol: 'http' });
const PORTS = [port(80, { name: 'http', appProtocol: 'http' }), HTTPS];

function read(annotations: Annotations, ports: readonly ServicePort[]): ReturnType<typeof serviceSettingsFor> {
  const prefixed = Object.entries(annotations).map(([name, value]) => [`weir.dev/${name}`, value]);
  return serviceSettingsFor(service('shop/web', { ports, annotations: Object.fromEntries(prefixed) }));
}

function settingsOf(annotations: Annotations, ports: readonly ServicePort[] = PORTS): ServiceSettings {
  const parsed = read({ 'tls-secret': 'web', ...annotations }, ports);
  assert.ok(parsed.kind === 'settings', parsed.kind === 'invalid' ? parsed.mistakes.join() : '');
  return parsed.settings;
}

function mistakesIn(annotations: Annotations, ports: readonly ServicePort[] = PORTS): readonly string[] {
  const parsed = read(annotations, ports);
  return parsed.kind === 'invalid' ? parsed.mistakes : [];
}

describe('weir.dev/https-redirect', () => {
  test('redirects HTTP at port 80 to 443, or to the first TLS port', () => {
    const { tls, httpPorts } = settingsOf({ 'https-redirect': 'true' });
    assert.equal(tls?.httpsRedirectPort, 443);
    assert.deepEqual(httpPorts, [80, 443]);
    const ports = [
      port(80, { name: 'http', appProtocol: 'http' }),
      port(9443, { name: 'a' }),
      port(8443, { name: 'b' }),
    ];
    assert.equal(settingsOf({ 'https-redirect': 'true', 'tls-ports': 'a,b' }, ports).tls?.httpsRedirectPort, 8443);
  });

  test('does not redirect with "false", which needs no TLS', () => {
    const { tls, httpPorts } = settingsOf({ 'https-redirect': 'false' });
    assert.equal(tls?.httpsRedirectPort, undefined);
    assert.deepEqual(httpPorts, [80, 443]);
    assert.deepEqual(mistakesIn({ 'https-redirect': 'false' }), []);
  });

  test('is refused without TLS, and without an HTTP port 80', () => {
    assert.deepEqual(mistakesIn({ 'https-redirect': 'true' }), [
      'annotation weir.dev/https-redirect: "true" can be honoured only with weir.dev/tls-secret; add that annotation, or remove this one',
    ]);
    for (const ports of [
      [HTTPS],
      [port(80, { name: 'http' }), HTTPS],
      [port(80, { name: 'http', appProtocol: 'amqp' }), HTTPS],
    ])
      assert.deepEqual(mistakesIn({ 'tls-secret': 'web', 'https-redirect': 'true' }, ports), [
        'annotation weir.dev/https-redirect: "true" can be honoured only if the Service has a port 80/TCP with appProtocol: http; add the port or its appProtocol, or remove this annotation',
      ]);
  });
});

describe('weir.dev/hsts-max-age', () => {
  test('sets the seconds, and 0 as well', () => {
    assert.equal(settingsOf({ 'hsts-max-age': '31536000' }).tls?.hstsMaxAgeSeconds, 31_536_000);
    assert.equal(settingsOf({ 'hsts-max-age': '0' }).tls?.hstsMaxAgeSeconds, 0);
    assert.equal(settingsOf({}).tls?.hstsMaxAgeSeconds, undefined);
  });

  test('is refused without TLS, at ports without HTTP, and with another unit', () => {
    assert.match(mistakesIn({ 'hsts-max-age': '60' })[0] ?? '', /"60" can be honoured only with weir\.dev\/tls-secret/);
    assert.match(
      mistakesIn({ 'tls-secret': 'web', 'hsts-max-age': '60' }, [port(443)])[0] ?? '',
      /^annotation weir\.dev\/hsts-max-age: "60" can be honoured only if TLS is terminated at a port with appProtocol: http/,
    );
    for (const value of ['1h', '-1', '', '1000000000'])
      assert.match(
        mistakesIn({ 'tls-secret': 'web', 'hsts-max-age': value })[0] ?? '',
        /is not allowed; use a whole number of seconds/,
      );
  });
});
