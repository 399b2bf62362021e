// Tests how commands reach the console: by URL or through the API server, with a token or the kubeconfig's credentials.
import assert from 'node:assert/strict';
import { writeFileSync } from 'node:fs';
import { createServer, type IncomingMessage, type RequestListener } from 'node:http';
import https from 'node:https';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { test } from 'node:test';
import { freePort, makeCertificate, temporaryDirectory } from '@weir/testkit';
import { runWeirInProcess } from '../fixtures/weir-in-process.ts';

const EMPTY: RequestListener = (_request, response) => void response.end('{"items": []}');

test('sends the token of the option, the file or the environment only in the header', async () => {
  await using directory = temporaryDirectory('ways');
  const file = join(directory.path, 'token');
  writeFileSync(file, 'of-file\n');
  const cases: readonly (readonly [args: string[], env: Record<string, string>, header: string | undefined])[] = [
    [['--token', 'of-option'], { WEIR_TOKEN: 'of-environment' }, 'Bearer of-option'],
    [['--token-file', file], { WEIR_TOKEN: 'of-environment' }, 'Bearer of-file'],
    [[], { WEIR_TOKEN: 'of-environment' }, 'Bearer of-environment'],
    [[], {}, undefined],
  ];
  for (const [args, env, header] of cases) {
    await using server = await listening(createServer(EMPTY));
    const { code } = await runWeirInProcess(['get', 'services', '--server', server.url, ...args], env);
    assert.equal(code, 0);
    assert.deepEqual(
      server.requests.map(({ headers, url }) => [headers.authorization, url]),
      [[header, '/api/v1/services']],
    );
  }
});

test('names --token-file and WEIR_TOKEN if the console needs a token', async () => {
  await using server = await listening(
    createServer((_request, response) => {
      response.writeHead(401, { 'content-type': 'application/json' });
      response.end('{"error": {"code": "SignInRequired", "message": "this console needs a Kubernetes token"}}');
    }),
  );
  const { code, stderr } = await runWeirInProcess(['get', 'services', '--server', server.url]);
  assert.equal(code, 1);
  assert.equal(
    stderr,
    'weir: this console needs a Kubernetes token; pass the token with --token-file FILE or WEIR_TOKEN\n',
  );
});

test('refuses to send a token unencrypted to another machine without --plain-http', async () => {
  const [port, token] = [await freePort(), { WEIR_TOKEN: 'of-environment' }];
  for (const host of ['192.0.2.1', '[2001:db8::1]', 'console.example', 'localhost.example']) {
    const args = ['usage', '--server', `http://${host}:${port}`];
    const { code, stderr } = await runWeirInProcess(args, token);
    assert.equal(code, 2);
    assert.match(stderr, /^weir: --server .* the token would be sent unencrypted; use https, .*--plain-http\n$/);
  }
  for (const host of ['127.0.0.2', '[::1]', 'localhost']) {
    const { stderr } = await runWeirInProcess(['usage', '--server', `http://${host}:${port}`], token);
    assert.match(stderr, /no console answers at/);
  }
  const allowed = await runWeirInProcess(['usage', '--server', `http://0.0.0.0:${port}`, '--plain-http'], token);
  assert.match(allowed.stderr, /no console answers at/);
  const withoutToken = await runWeirInProcess(['usage', '--server', `http://0.0.0.0:${port}`]);
  assert.match(withoutToken.stderr, /no console answers at/);
});

test('trusts the CA of --ca-file, and names the option if the CA is unknown', async () => {
  await using directory = temporaryDirectory('ways');
  const authority = makeCertificate({ name: 'ca', isAuthority: true });
  const serverCertificate = makeCertificate({ name: '127.0.0.1', issuer: authority });
  const caFile = join(directory.path, 'ca.crt');
  writeFileSync(caFile, authority.certificate);
  await using server = await listening(
    https.createServer({ cert: serverCertificate.chain, key: serverCertificate.key }, EMPTY),
  );
  const args = ['usage', '--server', server.url];
  assert.equal((await runWeirInProcess([...args, '--ca-file', caFile])).code, 0);
  const { code, stderr } = await runWeirInProcess(args);
  assert.equal(code, 2);
  assert.match(
    stderr,
    /^weir: no console answers at https:.*; use --ca-file with the CA that signed the certificate of the console\n$/,
  );
  const other = await runWeirInProcess(['usage', '--kubeconfig', kubeconfigIn(directory.path, server.url, {})]);
  assert.equal(other.code, 2);
  assert.match(
    other.stderr,
    /^weir: no console answers at https:.*; set certificate-authority of the cluster in the kubeconfig/,
  );
});

test('uses the console of the cluster of the kubeconfig with the credentials of the kubeconfig', async () => {
  await using directory = temporaryDirectory('ways');
  await using server = await listening(createServer(EMPTY));
  const kubeconfig = kubeconfigIn(directory.path, server.url);
  const { code, stderr } = await runWeirInProcess(['usage', '--month', '2026-01', '--kubeconfig', kubeconfig]);
  assert.equal(code, 0, stderr);
  assert.deepEqual(
    server.requests.map(({ headers, url }) => [headers.authorization, url]),
    [['Bearer of-kubeconfig', '/apis/console.weir.dev/v1/usage?month=2026-01']],
  );
});

test('requests the live view through an API server as a watch', async () => {
  await using directory = temporaryDirectory('ways');
  const frame = 'event: rates\ndata: {"at": "2026-01-01T00:00:00Z", "tenants": [], "services": []}\n\n';
  await using server = await listening(createServer((_request, response) => void response.write(frame)));
  const { code } = await runWeirInProcess([
    'top',
    '--once',
    '-o',
    'json',
    '--kubeconfig',
    kubeconfigIn(directory.path, server.url),
  ]);
  assert.equal(code, 0);
  assert.equal(server.requests[0]?.url, '/apis/console.weir.dev/v1/live?watch=true');
});

test('reports the message of the API server if the cluster has no console', async () => {
  await using directory = temporaryDirectory('ways');
  const status = { kind: 'Status', status: 'Failure', message: 'the server could not find the requested resource' };
  await using server = await listening(
    createServer((_request, response) => void response.writeHead(404).end(JSON.stringify(status))),
  );
  const { code, stderr } = await runWeirInProcess([
    'get',
    'tenants',
    '--kubeconfig',
    kubeconfigIn(directory.path, server.url),
  ]);
  assert.equal(code, 1);
  assert.match(
    stderr,
    /^weir: the server at .* is not a Weir console \(the server could not find the requested resource\); .*kubectl get apiservice v1\.console\.weir\.dev.*\n$/,
  );
});

test('prints the message of a console that refuses a request, over both transports', async () => {
  await using directory = temporaryDirectory('ways');
  const error = { code: 'NotAllowed', message: '"dev" lacks the right to get tenantusages.weir.dev in all namespaces' };
  await using server = await listening(
    createServer((_request, response) => void response.writeHead(403).end(JSON.stringify({ kind: 'Status', error }))),
  );
  for (const transport of [
    ['--server', server.url],
    ['--kubeconfig', kubeconfigIn(directory.path, server.url)],
  ]) {
    const { code, stderr } = await runWeirInProcess(['get', 'proxies', ...transport]);
    assert.equal(code, 1);
    assert.equal(stderr, `weir: ${error.message}\n`);
  }
});

test('rejects conflicting options and unreadable files before it sends a request', async () => {
  const server = `http://127.0.0.1:${await freePort()}`;
  const cases: readonly (readonly [args: string, message: RegExp])[] = [
    [
      `--server ${server} --kubeconfig k`,
      /--server and --kubeconfig each name a console; use only one of the two options/,
    ],
    [
      '--kubeconfig k --token a',
      /--token, --token-file and --ca-file need --server; omit these options with --kubeconfig/,
    ],
    ['--kubeconfig k --ca-file c', /--token, --token-file and --ca-file need --server/],
    [`--server ${server} --token a --token-file b`, /--token and --token-file are both given; use one of them/],
    [`--server ${server} --token ä`, /^weir: invalid --token: expected a token/],
    [`--server ${server} --token-file /nowhere`, /failed to read --token-file \/nowhere: /],
    [`--server ${server} --ca-file /nowhere`, /failed to read --ca-file \/nowhere: /],
    [`--server ${server} --ca-file ${process.execPath}`, /--ca-file needs an https URL/],
    ['--kubeconfig /nowhere', /\/nowhere cannot be read: the file does not exist; name a kubeconfig with --kubeconfig/],
  ];
  for (const [args, message] of cases) {
    const { code, stderr } = await runWeirInProcess(['get', 'services', ...args.split(' ')]);
    assert.equal(code, 2, args);
    assert.match(stderr, message);
    assert.match(stderr, /^weir: .*\n$/);
  }
});

function kubeconfigIn(directory: string, server: string, trust: object = { 'insecure-skip-tls-verify': true }): string {
  const path = join(directory, 'kubeconfig');
  const content = {
    apiVersion: 'v1',
    kind: 'Config',
    clusters: [{ name: 'test', cluster: { server: server.replace(/\/$/, ''), ...trust } }],
    users: [{ name: 'dev', user: { token: 'of-kubeconfig' } }],
    contexts: [{ name: 'test', context: { cluster: 'test', user: 'dev' } }],
    'current-context': 'test',
  };
  writeFileSync(path, JSON.stringify(content));
  return path;
}

interface Listening extends AsyncDisposable {
  readonly url: string;
  readonly requests: readonly Pick<IncomingMessage, 'headers' | 'url'>[];
}

async function listening(server: ReturnType<typeof createServer> | https.Server): Promise<Listening> {
  const requests: Pick<IncomingMessage, 'headers' | 'url'>[] = [];
  server.prependListener(
    'request',
    ({ headers, url }: IncomingMessage) => void requests.push({ headers, url: url ?? '' }),
  );
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const scheme = server instanceof https.Server ? 'https' : 'http';
  return {
    url: `${scheme}://127.0.0.1:${(server.address() as AddressInfo).port}/`,
    requests,
    async [Symbol.asyncDispose]() {
      server.closeAllConnections();
      await server[Symbol.asyncDispose]();
    },
  };
}
