// Scans the TLS of a running standalone with openssl(1), as an auditor would.
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { writeFileSync } from 'node:fs';
import { createServer, type Server } from 'node:http';
import { connect as connectHttp2, type IncomingHttpHeaders } from 'node:http2';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { after, before, describe, test } from 'node:test';
import { connect as connectTls } from 'node:tls';
import {
  type Certificate,
  freePort,
  makeCertificate,
  makeOcspResponse,
  type TemporaryDirectory,
  temporaryDirectory,
} from '@weir/testkit';
import { programPath, requireProgram } from '@weir/tools';
import { endpointSlice, type ManifestDirectory, manifestDirectory, service } from '../fixtures/manifests.ts';
import { startTestStandalone, type TestStandalone } from '../fixtures/standalone.ts';

const ROOT = makeCertificate({ name: 'Scan CA', isAuthority: true });
const SHOP = { name: 'shop.example', names: ['shop.example'], issuer: ROOT };
const ECDSA = makeCertificate(SHOP);
const RSA = makeCertificate({ ...SHOP, keyType: 'rsa' });
const GAME = makeCertificate({ name: 'game.example', names: ['game.example'], issuer: ROOT });

const POLICY = {
  apiVersion: 'weir.dev/v1alpha1',
  kind: 'TenantPolicy',
  metadata: { name: 'shop' },
  spec: { namespaceSelector: { matchLabels: { 'kubernetes.io/metadata.name': 'shop' } }, allowedHosts: ['*.example'] },
};

const secret = (name: string, certificate: Certificate): unknown => ({
  apiVersion: 'v1',
  kind: 'Secret',
  metadata: { name, namespace: 'shop' },
  type: 'kubernetes.io/tls',
  data: {
    'tls.crt': Buffer.from(certificate.chain).toString('base64'),
    'tls.key': Buffer.from(certificate.key).toString('base64'),
    'tls.ocsp': makeOcspResponse(certificate).toString('base64'),
  },
});

const TLS_1_2_SUITES = [
  ...['ECDHE-ECDSA-AES128-GCM-SHA256', 'ECDHE-ECDSA-AES256-GCM-SHA384', 'ECDHE-ECDSA-CHACHA20-POLY1305'],
  ...['ECDHE-RSA-AES128-GCM-SHA256', 'ECDHE-RSA-AES256-GCM-SHA384', 'ECDHE-RSA-CHACHA20-POLY1305'],
];
const TLS_1_3_SUITES = ['TLS_AES_256_GCM_SHA384', 'TLS_CHACHA20_POLY1305_SHA256', 'TLS_AES_128_GCM_SHA256'];
/** All that openssl can offer, also what is broken. */
const EVERYTHING = 'ALL:COMPLEMENTOFALL:@SECLEVEL=0';

describe('a TLS scan with openssl', requireProgram('openssl'), () => {
  let files: ManifestDirectory;
  let scratch: TemporaryDirectory;
  let backend: Server;
  let fleet: TestStandalone;
  let port = 0;

  before(async () => {
    files = manifestDirectory();
    scratch = temporaryDirectory('scan');
    writeFileSync(join(scratch.path, 'ca.pem'), ROOT.certificate);
    backend = createServer((_request, response) => response.end('hello')).listen(0, '127.0.0.1');
    await once(backend, 'listening');
    port = await freePort();
    const serviceFor = (name: string, secrets: string): unknown => {
      const annotations = {
        'weir.dev/tls-secret': secrets,
        'weir.dev/tls-ports': String(port),
        'weir.dev/hosts': `${name}.example`,
      };
      return service(name, { port, appProtocol: 'http', annotations });
    };
    const { port: backendPort } = backend.address() as AddressInfo;
    files.write(
      'all.yaml',
      POLICY,
      ...[secret('ecdsa', ECDSA), secret('rsa', RSA), secret('game', GAME)],
      ...[serviceFor('shop', 'ecdsa,rsa'), serviceFor('game', 'game')],
      ...[endpointSlice('shop', backendPort), endpointSlice('game', backendPort)],
    );
    fleet = await startTestStandalone(files, ['--shared-ports', String(port)]);
  });
  after(async () => {
    await fleet?.[Symbol.asyncDispose]();
    backend?.close();
    await scratch?.[Symbol.asyncDispose]();
    await files?.[Symbol.asyncDispose]();
  });

  /** Runs `openssl s_client`. Sends `input` and waits until the server closes, or ends after the handshake without `input`. */
  async function connect(options: readonly string[], input = ''): Promise<{ code: number; output: string }> {
    const host = options.includes('-servername') ? [] : ['-servername', 'shop.example'];
    const args = ['s_client', '-connect', `127.0.0.1:${port}`, ...host, '-CAfile', join(scratch.path, 'ca.pem')];
    const client = spawn(programPath('openssl'), [...args, ...(input === '' ? [] : ['-ign_eof']), ...options]);
    client.stdin.on('error', () => undefined);
    client.stdin.end(input);
    const exited = once(client, 'exit') as Promise<[number]>;
    const [stdout, stderr] = await Promise.all([text(client.stdout), text(client.stderr)]);
    return { code: (await exited)[0], output: stdout + stderr };
  }

  /** Returns the cipher suites that the server accepts, in the server's order: offers all, and then all but those. */
  async function acceptedSuites(offer: (excluded: readonly string[]) => readonly string[]): Promise<readonly string[]> {
    const accepted: string[] = [];
    for (;;) {
      const { output } = await connect(offer(accepted));
      const suite = /Cipher is ([A-Z0-9_-]+)/.exec(output)?.[1];
      if (suite === undefined || suite === 'NONE') return accepted;
      assert.ok(!accepted.includes(suite), `${suite} was chosen twice`);
      accepted.push(suite);
    }
  }

  test('accepts TLS 1.2 and 1.3, and no older version', async () => {
    for (const version of ['-tls1_2', '-tls1_3']) {
      const { code, output } = await connect([version, '-verify_return_error', '-verify_hostname', 'shop.example']);
      assert.equal(code, 0, output);
      assert.match(output, /Verify return code: 0 \(ok\)/);
    }
    for (const version of ['-tls1_1', '-tls1']) {
      const { code, output } = await connect([version, '-cipher', EVERYTHING]);
      assert.notEqual(code, 0);
      assert.match(output, /alert protocol version/);
    }
  });

  test('accepts only cipher suites with forward secrecy and authenticated encryption', async () => {
    const old = await acceptedSuites((excluded) => {
      const others = ['ALL', 'COMPLEMENTOFALL', ...excluded.map((suite) => `!${suite}`), '@SECLEVEL=0'];
      return ['-tls1_2', '-cipher', others.join(':')];
    });
    assert.deepEqual(old, TLS_1_2_SUITES);
    const offered = [...TLS_1_3_SUITES].reverse().concat('TLS_AES_128_CCM_SHA256', 'TLS_AES_128_CCM_8_SHA256');
    const current = await acceptedSuites((excluded) => {
      const others = offered.filter((suite) => !excluded.includes(suite));
      return ['-tls1_3', '-ciphersuites', others.join(':')];
    });
    assert.deepEqual(current, TLS_1_3_SUITES);
  });

  test('gives the certificate for the host and for the signature algorithms', async () => {
    const cases = [
      ['shop.example', [], ECDSA],
      ['shop.example', ['-sigalgs', 'RSA-PSS+SHA256'], RSA],
      ['game.example', [], GAME],
    ] as const;
    for (const [host, more, expected] of cases) {
      const { output } = await connect(['-servername', host, ...more]);
      assert.ok(output.includes(expected.certificate.trim()), host);
    }
    const unknown = await connect(['-servername', 'other.example']);
    assert.match(unknown.output, /unrecognized name/);
  });

  test('refuses renegotiation, and compresses nothing', async () => {
    const { output } = await connect(['-tls1_2', '-no_ign_eof'], 'R\n');
    assert.match(output, /^RENEGOTIATING$/m);
    assert.match(output, /no renegotiation/);
    assert.match(output, /Secure Renegotiation IS supported/);
    assert.match(output, /Compression: NONE/);
  });

  for (const version of ['-tls1_2', '-tls1_3']) {
    test(`resumes a session of the same host only, with ${version}`, async () => {
      const path = join(scratch.path, `session${version}`);
      const request = (host: string): string => `GET / HTTP/1.1\r\nHost: ${host}\r\nConnection: close\r\n\r\n`;
      const asks = (host: string, ...more: string[]): Promise<{ output: string }> =>
        connect([version, '-servername', host, ...more], request(host));
      const first = await asks('shop.example', '-sess_out', path);
      assert.match(first.output, /hello/);
      assert.match(first.output, /^New, /m);
      assert.match((await asks('shop.example', '-sess_in', path)).output, /^Reused, /m);
      assert.match((await asks('game.example', '-sess_in', path)).output, /^New, /m);
    });
  }

  test('negotiates HTTP/2 or HTTP/1.1 with ALPN, and refuses other protocols', async () => {
    for (const [offered, chosen] of [
      ['http/1.1', 'http/1.1'],
      ['h2', 'h2'],
      ['h2,http/1.1', 'h2'],
      ['http/1.1,h2', 'h2'],
      ['smtp,http/1.1', 'http/1.1'],
    ] as const) {
      for (const version of ['-tls1_2', '-tls1_3']) {
        const { code, output } = await connect([version, '-alpn', offered]);
        assert.equal(code, 0, output);
        assert.equal(/^ALPN protocol: (.*)$/m.exec(output)?.[1], chosen, `${version} ${offered}`);
      }
    }
    assert.match((await connect([])).output, /^No ALPN negotiated$/m);
    const { code, output } = await connect(['-alpn', 'smtp']);
    assert.notEqual(code, 0);
    assert.match(output, /no application protocol/);
  });

  test('answers requests of the protocol that ALPN has chosen, or of HTTP/1.1 without ALPN', async (context) => {
    const tls = { ca: ROOT.certificate, servername: 'shop.example' };
    const session = connectHttp2(`https://shop.example:${port}`, {
      createConnection: () => connectTls({ ...tls, host: '127.0.0.1', port, ALPNProtocols: ['h2', 'http/1.1'] }),
    });
    context.after(() => session.destroy());
    const stream = session.request({ ':path': '/' });
    const [headers] = (await once(stream, 'response')) as [IncomingHttpHeaders];
    assert.deepEqual([session.alpnProtocol, headers[':status']], ['h2', 200]);
    assert.equal(await text(stream), 'hello');
    const request = 'GET / HTTP/1.1\r\nHost: shop.example\r\nConnection: close\r\n\r\n';
    for (const alpn of [['-alpn', 'http/1.1'], []]) {
      const { output } = await connect(alpn, request);
      assert.match(output, /^HTTP\/1\.1 200 OK\r$/m);
      assert.match(output, /hello/);
    }
  });

  test('staples an OCSP response that openssl can read', async () => {
    const { output } = await connect(['-status']);
    assert.match(output, /OCSP Response Status: successful \(0x0\)/);
    assert.match(output, /Cert Status: good/);
  });
});
