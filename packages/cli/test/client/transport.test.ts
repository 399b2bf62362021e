// By what way a command comes to a console, and as whom.
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

test('a token comes from the option, a file or the environment, in the header alone', async () => {
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
      server.asked.map(({ headers, url }) => [headers.authorization, url]),
      [[header, '/api/v1/services']],
    );
  }
});

test('a token does not cross the network in the clear, unless that is asked for', async () => {
  const [port, token] = [await freePort(), { WEIR_TOKEN: 'of-environment' }];
  for (const host of ['192.0.2.1', '[2001:db8::1]', 'console.example', 'localhost.example']) {
    const args = ['usage', '--server', `http://${host}:${port}`];
    const { code, stderr } = await runWeirInProcess(args, token);
    assert.equal(code, 2);
    assert.match(stderr, /^weir: --server .* the token would go there in the clear; use https, .*--plain-http\n$/);
  }
  for (const host of ['127.0.0.2', '[::1]', 'localhost']) {
    const { stderr } = await runWeirInProcess(['usage', '--server', `http://${host}:${port}`], token);
    assert.match(stderr, /no console answers at/);
  }
  const meant = await runWeirInProcess(['usage', '--server', `http://0.0.0.0:${port}`, '--plain-http'], token);
  assert.match(meant.stderr, /no console answers at/);
  const without = await runWeirInProcess(['usage', '--server', `http://0.0.0.0:${port}`]);
  assert.match(without.stderr, /no console answers at/);
});

test('a console over TLS is believed by the authority that was named, and else it is said how to name it', async () => {
  await using directory = temporaryDirectory('ways');
  const authority = makeCertificate({ name: 'ca', isAuthority: true });
  const own = makeCertificate({ name: '127.0.0.1', issuer: authority });
  const caFile = join(directory.path, 'ca.crt');
  writeFileSync(caFile, authority.certificate);
  await using server = await listening(https.createServer({ cert: own.chain, key: own.key }, EMPTY));
  const args = ['usage', '--server', server.url];
  assert.equal((await runWeirInProcess([...args, '--ca-file', caFile])).code, 0);
  const { code, stderr } = await runWeirInProcess(args);
  assert.equal(code, 2);
  assert.match(stderr, /^weir: no console answers at https:.*; name the authority of its certificate by --ca-file\n$/);
  const other = await runWeirInProcess(['usage', '--kubeconfig', kubeconfigIn(directory.path, server.url, {})]);
  assert.equal(other.code, 2);
  assert.match(other.stderr, /^weir: no console answers at https:.*; the kubeconfig has to name the authority/);
});

test('without a server it is the console of the cluster that the kubeconfig names, signed in as it says', async () => {
  await using directory = temporaryDirectory('ways');
  await using server = await listening(createServer(EMPTY));
  const kubeconfig = kubeconfigIn(directory.path, server.url);
  const { code, stderr } = await runWeirInProcess(['usage', '--month', '2026-01', '--kubeconfig', kubeconfig]);
  assert.equal(code, 0, stderr);
  assert.deepEqual(
    server.asked.map(({ headers, url }) => [headers.authorization, url]),
    [['Bearer of-kubeconfig', '/apis/console.weir.dev/v1/usage?month=2026-01']],
  );
});

test('a live view through an API server says that it lasts', async () => {
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
  assert.equal(server.asked[0]?.url, '/apis/console.weir.dev/v1/live?watch=true');
});

test('a cluster without a console says so in one line, in the words of its API server', async () => {
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
    /^weir: what answers at .* \(the server could not find the requested resource\); .*kubectl get apiservice v1\.console\.weir\.dev.*\n$/,
  );
});

test('a refusal of the console is told as it is, whatever the way', async () => {
  await using directory = temporaryDirectory('ways');
  const error = { code: 'NotAllowed', message: '"dev" lacks the right to get tenantusages.weir.dev in all namespaces' };
  await using server = await listening(
    createServer((_request, response) => void response.writeHead(403).end(JSON.stringify({ kind: 'Status', error }))),
  );
  for (const way of [
    ['--server', server.url],
    ['--kubeconfig', kubeconfigIn(directory.path, server.url)],
  ]) {
    const { code, stderr } = await runWeirInProcess(['get', 'proxies', ...way]);
    assert.equal(code, 1);
    assert.equal(stderr, `weir: ${error.message}\n`);
  }
});

test('what does not go together, or cannot be read, is said before anybody is asked', async () => {
  const server = `http://127.0.0.1:${await freePort()}`;
  const cases: readonly (readonly [args: string, message: RegExp])[] = [
    [`--server ${server} --kubeconfig k`, /--server and --kubeconfig name two ways to a console; use one/],
    ['--kubeconfig k --token a', /--token, --token-file and --ca-file are for --server; .*: leave them out/],
    ['--kubeconfig k --ca-file c', /--token, --token-file and --ca-file are for --server/],
    [`--server ${server} --token a --token-file b`, /--token and --token-file are both given; use one/],
    [`--server ${server} --token ä`, /^weir: --token holds no token/],
    [`--server ${server} --token-file /nowhere`, /--token-file is \/nowhere, which cannot be read/],
    [`--server ${server} --ca-file /nowhere`, /--ca-file is \/nowhere, which cannot be read/],
    [`--server ${server} --ca-file ${process.execPath}`, /--ca-file is for https/],
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
  readonly asked: readonly Pick<IncomingMessage, 'headers' | 'url'>[];
}

async function listening(server: ReturnType<typeof createServer> | https.Server): Promise<Listening> {
  const asked: Pick<IncomingMessage, 'headers' | 'url'>[] = [];
  server.prependListener(
    'request',
    ({ headers, url }: IncomingMessage) => void asked.push({ headers, url: url ?? '' }),
  );
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const scheme = server instanceof https.Server ? 'https' : 'http';
  return {
    url: `${scheme}://127.0.0.1:${(server.address() as AddressInfo).port}/`,
    asked,
    async [Symbol.asyncDispose]() {
      server.closeAllConnections();
      await server[Symbol.asyncDispose]();
    },
  };
}
