import assert from 'node:assert/strict';
import { chmodSync } from 'node:fs';
import { test } from 'node:test';
import { freePort } from '@weir/testkit';
import { manifestDirectory } from './fixtures/manifests.ts';
import { runWeirInProcess } from './fixtures/weir-in-process.ts';
import { runWeirProcess } from './fixtures/weir-process.ts';

const WRONG: readonly (readonly [args: string, message: RegExp])[] = [
  ['bogus', /unknown command 'bogus'/],
  ['translate', /required option '-f, --filename <path>' not specified/],
  ['translate -f . --bla', /unknown option '--bla'/],
  ['translate -f . -o xml', /'xml' is invalid\. Allowed choices are table, json, yaml/],
  ['translate -f . --node edge', /'edge' is invalid\. Use NAME=ADDRESS, such as edge-1=192\.0\.2\.10/],
  ['translate -f . --node a=1.2.3', /Use NAME=ADDRESS/],
  ['translate -f . --node a=127.0.0.1 --node a=127.0.0.2', /Node "a" is given twice/],
  [
    'translate -f . --shared-ports 443,22',
    /'443,22' is invalid.*Each item must be a TCP port .* the nodes do not need/,
  ],
  ['translate -f . --reserved-ports 9100,80-70', /'9100,80-70' is invalid.*Each item must be a port .* or a range/],
  [
    'translate -f . --reserved-ports 400-500 --shared-ports 443',
    /--shared-ports and --reserved-ports both contain 443; list each port in only one/,
  ],
  ['get proxies -n shop', /proxies have no namespace; omit -n/],
  ['completion tcsh', /'tcsh' is invalid.*bash, zsh, fish/],
  ['get', /missing required argument 'kind'/],
  ['get pods', /'pods' is invalid.*Use one of tenants, services, proxies, problems, suspensions/],
  ['usage --month 2026-13', /Use YYYY-MM, such as 2026-01/],
  ['usage --step 60m', /'60m' is invalid\. Allowed are 1m, 5m, 15m, 1h, 6h, 1d\. Did you mean 1h\?/],
  ['usage --since 7d --month 2026-01', /'--since <time>' cannot be used with option '--month <yyyy-mm>'/],
  ['usage shop/web', /"shop\/web" is not a tenant; for a Service, add --since or --step/],
  ['usage shop/web/x --since 7d', /invalid Service "shop\/web\/x": expected NAMESPACE\/SERVICE/],
  ['explain web', /invalid Service "web": expected NAMESPACE\/SERVICE/],
  ['suspend shop', /required option '--message <text>' not specified/],
  ['suspend a/b/c --message x', /invalid target "a\/b\/c": expected TENANT or NAMESPACE\/SERVICE/],
  ['suspend shop --message x --for soon', /Use a duration such as 30s, 10m or 2h/],
  ['suspend shop --message x --for 104249991d', /Use a duration .* at most 3650d/],
  ['suspend Bad! --message x --local', /invalid target "Bad!": expected TENANT or NAMESPACE\/SERVICE/],
  ['explain a/b/c', /invalid Service "a\/b\/c": expected NAMESPACE\/SERVICE/],
  ['suspend shop -n shop --message x', /"shop" and --namespace are both given; use NAMESPACE\/SERVICE for one Service/],
  ['suspend --namespace a/b --message x', /invalid namespace "a\/b"/],
  ['resume', /the target is missing: expected TENANT, NAMESPACE\/SERVICE or --namespace NAME/],
  ['resume /web', /invalid target "\/web"/],
  ['top --sort bytes', /'bytes' is invalid/],
  ['top --clients shop --refused', /'--clients <tenant>' cannot be used with option '--refused'/],
  ['get services --server http://u:secret@x', /^(?!.*secret).*contains a user or password/],
  ['get services --server ftp://x', /invalid --server "ftp:\/\/x": expected a URL such as http:\/\/127\.0\.0\.1:8686/],
  ['demo --network 10.0.0', /invalid --network "10\.0\.0": expected the first three numbers of a loopback address/],
  ['doctor --kubeconfig /nowhere', /\/nowhere cannot be read: the file does not exist/],
  ['doctor --fleet Weir', /invalid --fleet \(or WEIR_FLEET\) "Weir": expected up to 63 lower-case letters/],
];

for (const [args, message] of WRONG) {
  test(`weir ${args} exits with 2 and names the mistake`, async () => {
    const { code, stdout, stderr } = await runWeirInProcess(args.split(' '));
    assert.equal(code, 2);
    assert.match(stderr, message);
    assert.match(stderr, /^weir: /);
    assert.equal(stdout, '');
  });
}

test('weir as a process prints a usage error without a stack trace', async () => {
  const { code, output, stdout } = await runWeirProcess(['translate', '-f', '.', '--bla']);
  assert.equal(code, 2);
  assert.equal(stdout, '');
  assert.equal(output, "weir: unknown option '--bla'\n(add --help for usage and examples)\n");
});

test('names WEIR_SERVER if the variable contains no URL', async () => {
  const { code, stderr } = await runWeirInProcess(['get', 'services'], { WEIR_SERVER: 'garbage' });
  assert.equal(code, 2);
  assert.equal(stderr, 'weir: invalid WEIR_SERVER "garbage": expected a URL such as http://127.0.0.1:8686\n');
});

test('reports a wrong setting of standalone in the words of the proxy', async () => {
  await using files = manifestDirectory();
  const args = ['standalone', '-f', files.path, '--console', 'off'];
  for (const [name, allowed] of [
    ['WEIR_LOG_LEVEL', 'fatal, error, warn, info, debug, trace, silent'],
    ['WEIR_TRANSPORT', 'syscalls, node'],
    ['WEIR_TLS', 'openssl, node'],
  ] as const) {
    const { code, stderr } = await runWeirInProcess(args, { [name]: 'loud' });
    assert.equal(code, 2);
    assert.equal(stderr, `weir: ${name} is "loud"; use one of ${allowed}\n`);
  }
});

const NO_CLUSTER = { KUBECONFIG: undefined, HOME: '/nowhere', KUBERNETES_SERVICE_HOST: undefined };

test('weir doctor without a cluster or Redis exits with an error that names the options', async () => {
  const { code, output } = await runWeirProcess(['doctor'], { ...NO_CLUSTER, WEIR_REDIS_URL: undefined });
  assert.equal(code, 2);
  assert.match(
    output,
    /^weir: no Kubernetes API server found: .*--kubeconfig; there is also no Redis to check, because neither --redis.*\n$/,
  );
});

test('weir doctor without a kubeconfig checks only Redis', async () => {
  const redis = `redis://127.0.0.1:${await freePort()}`;
  const { code, stdout } = await runWeirProcess(['doctor'], { ...NO_CLUSTER, WEIR_REDIS_URL: redis });
  assert.equal(code, 1);
  assert.match(stdout, /^warning +KubernetesVersion .*: not checked: no Kubernetes API server found: /m);
  assert.match(stdout, /^error +RedisReachable .* refuses the connection: no process listens/m);
});

test('client commands exit with 2 and print a fix if no console answers', async () => {
  const server = `http://127.0.0.1:${await freePort()}`;
  for (const args of ['get services', 'usage', 'top --once', 'explain a/b', 'resume a', 'suspend a --message b']) {
    const { code, stderr } = await runWeirInProcess(args.split(' '), { WEIR_SERVER: server });
    assert.equal(code, 2, stderr);
    assert.match(
      stderr,
      /^weir: no console answers at http:.*`weir standalone -f DIR`.*--server URL or WEIR_SERVER\n$/,
    );
  }
});

test('reports a server that is not a Weir console', async () => {
  const { createServer } = await import('node:http');
  await using server = createServer((_request, response) => void response.end('hello'));
  await new Promise<void>((resolve) => server.listen({ host: '127.0.0.1', port: 0 }, resolve));
  const address = server.address();
  const port = typeof address === 'object' ? address?.port : 0;
  const { code, stderr } = await runWeirInProcess(['usage', '--server', `http://127.0.0.1:${port}`]);
  assert.equal(code, 1);
  assert.match(stderr, /is not a Weir console.*check --server or WEIR_SERVER/);
});

test('every command prints examples in its help', async () => {
  for (const command of [
    'standalone',
    'translate',
    'top',
    'usage',
    'get',
    'explain',
    'suspend',
    'resume',
    'doctor',
    'demo',
    'version',
    'completion',
  ]) {
    const { code, stdout } = await runWeirInProcess([command, '--help']);
    assert.equal(code, 0);
    assert.match(stdout, new RegExp(`Usage: weir ${command}`));
    assert.match(stdout, new RegExp(`Examples:\\n +weir ${command}`));
    assert.deepEqual(
      stdout.split('\n').filter((line) => line.length > 130),
      [],
    );
  }
});

test('weir without arguments lists the commands and exits with 2', async () => {
  const { code, stderr } = await runWeirInProcess([]);
  assert.equal(code, 2);
  assert.match(stderr, /Commands:/);
});

const isRoot = process.getuid?.() === 0;

test('reports a directory that may not be read', { skip: isRoot && 'root may read everything' }, async () => {
  await using files = manifestDirectory();
  chmodSync(files.path, 0);
  const { code, output } = await runWeirProcess(['translate', '-f', files.path]);
  assert.notEqual(code, 0);
  assert.match(output, /permission denied/i);
  chmodSync(files.path, 0o700);
});
