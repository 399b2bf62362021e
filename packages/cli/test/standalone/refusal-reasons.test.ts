// Tests for each reason that a refused client is shown with its Service and reason: by `weir top --refused` while it happens, and by
// `weir explain` afterwards.
import assert from 'node:assert/strict';
import { connect } from 'node:net';
import { test } from 'node:test';
import { type ConnectionOptions, connect as connectTls } from 'node:tls';
import { echoServer, eventually, freePort, httpBackend, makeCertificate } from '@weir/testkit';
import { endpointSlice, manifestDirectory, type ServiceOptions, secret, service } from '../fixtures/manifests.ts';
import { startTestStandalone } from '../fixtures/standalone.ts';
import { runWeirInProcess, runWeirOnTerminal } from '../fixtures/weir-in-process.ts';

const WAIT = { timeoutMs: 30_000, intervalMs: 100 };
const LOAD_BALANCER = '127.0.0.8';

interface Address {
  readonly port: number;
  /** A host of the Service on the shared port. */
  readonly host: string;
}

/** A Service whose name is the reason, and a client that it refuses. */
interface RefusalCase {
  readonly reason: string;
  readonly annotations?: Readonly<Record<string, string>>;
  readonly appProtocol?: 'http';
  readonly sourceRanges?: readonly string[];
  readonly isShared?: true;
  readonly hasNoEndpoint?: true;
  readonly isSuspended?: true;
  act(at: Address): Promise<unknown>;
}

const CASES: readonly RefusalCase[] = [
  { reason: 'connection-limit', annotations: { 'weir.dev/max-connections': '0' }, act: sends('') },
  { reason: 'rate-limit', annotations: { 'weir.dev/new-connections-per-second': '0' }, act: sends('') },
  { reason: 'client-limit', annotations: { 'weir.dev/max-connections-per-client': '0' }, act: sends('') },
  { reason: 'source-range', sourceRanges: ['192.0.2.0/24'], act: sends('') },
  { reason: 'bad-proxy-header', act: sends('no PROXY header\r\n', LOAD_BALANCER) },
  { reason: 'bad-client-hello', annotations: { 'weir.dev/tls-passthrough': 'true' }, act: sends('no ClientHello') },
  { reason: 'prelude-incomplete', annotations: { 'weir.dev/tls-passthrough': 'true' }, act: leaves },
  {
    reason: 'unknown-host',
    annotations: { 'weir.dev/tls-passthrough': 'true', 'weir.dev/hosts': 'web.example' },
    act: failsHandshake({ servername: 'other.example' }),
  },
  {
    reason: 'tls-handshake-failed',
    annotations: { 'weir.dev/tls-secret': 'web-tls' },
    act: failsHandshake({ minVersion: 'TLSv1', maxVersion: 'TLSv1.1', ciphers: 'ALL:@SECLEVEL=0' }),
  },
  {
    reason: 'too-many-requests',
    appProtocol: 'http',
    annotations: { 'weir.dev/requests-per-second': '0' },
    act: gets(429),
  },
  { reason: 'suspended', appProtocol: 'http', isSuspended: true, act: gets(403) },
  { reason: 'cut-off', appProtocol: 'http', isSuspended: true, isShared: true, act: gets(403) },
  { reason: 'no-endpoints', appProtocol: 'http', hasNoEndpoint: true, isShared: true, act: gets(503) },
];

test('shows refused clients of every reason in top --refused and explain', async () => {
  await using stack = new AsyncDisposableStack();
  const files = stack.use(manifestDirectory());
  const echo = stack.use(await echoServer());
  const http = stack.use(await httpBackend({ handler: (_request, response) => response.end('served') }));
  const sharedPort = await freePort();
  const certificate = makeCertificate({ name: 'web.example' });
  files.write(
    'shop.yaml',
    {
      apiVersion: 'weir.dev/v1alpha1',
      kind: 'TenantPolicy',
      metadata: { name: 'shop' },
      spec: {
        namespaceSelector: { matchLabels: { 'kubernetes.io/metadata.name': 'shop' } },
        allowedHosts: ['*.example'],
      },
    },
    {
      ...(secret('web-tls', { 'tls.crt': certificate.chain, 'tls.key': certificate.key }) as object),
      type: 'kubernetes.io/tls',
    },
    // The shared port is open as long as one of its Services has an endpoint.
    serviceWith('open', { port: sharedPort, appProtocol: 'http', annotations: { 'weir.dev/hosts': 'open.example' } }),
    endpointSlice('open', http.port),
  );
  const clients: (() => Promise<unknown>)[] = [];
  for (const { reason, annotations = {}, appProtocol, act, ...over } of CASES) {
    const port = over.isShared ? sharedPort : await freePort();
    const host = `${reason}.example`;
    clients.push(() => act({ port, host }));
    const more = {
      ...(over.isShared && { 'weir.dev/hosts': host }),
      ...('weir.dev/tls-secret' in annotations && { 'weir.dev/tls-ports': String(port) }),
    };
    files.write(
      `${reason}.yaml`,
      serviceWith(
        reason,
        { port, annotations: { ...annotations, ...more }, ...(appProtocol && { appProtocol }) },
        over,
      ),
      ...(over.hasNoEndpoint ? [] : [endpointSlice(reason, appProtocol === 'http' ? http.port : echo.port)]),
      ...(over.isSuspended ? [suspensionOf(reason)] : []),
    );
  }
  const args = ['--trust-proxy-protocol', `${LOAD_BALANCER}/32`, '--shared-ports', String(sharedPort)];
  const fleet = stack.use(await startTestStandalone(files, args));

  const env = { WEIR_SERVER: fleet.url };
  const missing = new Set(CASES.map(({ reason }) => reason));
  const top = new AbortController();
  const watching = runWeirOnTerminal(
    {
      env,
      columns: 200,
      signal: top.signal,
      onOutput(text) {
        for (const reason of missing)
          if (new RegExp(`^  shop/${reason} +\\S+ +\\S+ ${reason}$`, 'm').test(text)) missing.delete(reason);
      },
    },
    ['top', '--refused'],
  );
  let rounds = 0;
  // The rates of a frame are those between two readings, so a frame may show no refusal of a round.
  while (missing.size > 0) {
    await Promise.all(clients.map((client) => client()));
    rounds += 1;
    assert.ok(rounds < 1_000, `top shows no ${[...missing].join(', ')}`);
  }
  top.abort();
  assert.equal((await watching).code, 0);

  for (const { reason } of CASES) {
    await eventually(async () => {
      const { stdout } = await runWeirInProcess(['explain', `shop/${reason}`, '-o', 'json'], env);
      const { month, refusedToday } = JSON.parse(stdout);
      assert.deepEqual([month.refused, refusedToday], Array(2).fill({ [reason]: rounds }));
    }, WAIT);
    const { stdout } = await runWeirInProcess(['explain', `shop/${reason}`], env);
    assert.match(stdout, new RegExp(`^  this month: ${rounds} ${reason}$`, 'm'));
  }
});

function serviceWith(
  name: string,
  options: ServiceOptions,
  { sourceRanges }: Pick<RefusalCase, 'sourceRanges'> = {},
): unknown {
  const made = service(name, options) as { readonly spec: object };
  return { ...made, spec: { ...made.spec, ...(sourceRanges && { loadBalancerSourceRanges: sourceRanges }) } };
}

function suspensionOf(name: string): unknown {
  return {
    apiVersion: 'weir.dev/v1alpha1',
    kind: 'Suspension',
    metadata: { name },
    spec: { target: { type: 'Service', namespace: 'shop', service: name }, message: 'stop' },
  };
}

/** Sends text, and waits until the connection has ended. */
function sends(text: string, localAddress?: string): RefusalCase['act'] {
  return async ({ port }) => {
    const socket = connect({ host: '127.0.0.1', port, ...(localAddress !== undefined && { localAddress }) });
    // The proxy resets the connection.
    socket.on('error', () => undefined).resume();
    if (text !== '') socket.write(text);
    await new Promise((resolve) => socket.once('close', resolve));
  };
}

async function leaves({ port }: Address): Promise<void> {
  const socket = connect({ host: '127.0.0.1', port });
  socket.on('error', () => undefined).resume();
  socket.end('\x16\x03\x01');
  await new Promise((resolve) => socket.once('close', resolve));
}

function failsHandshake(options: ConnectionOptions): RefusalCase['act'] {
  return async ({ port }) => {
    const socket = connectTls({ host: '127.0.0.1', port, rejectUnauthorized: false, ...options });
    socket.on('error', () => undefined).resume();
    await new Promise((resolve) => socket.once('close', resolve));
  };
}

/** Sends a request on a connection of its own, and expects an answer with this status. */
function gets(status: number): RefusalCase['act'] {
  return async ({ port, host }) => {
    const socket = connect({ host: '127.0.0.1', port });
    let answer = '';
    socket
      .setEncoding('latin1')
      .on('error', () => undefined)
      .on('data', (text) => {
        answer += text;
      });
    socket.write(`GET / HTTP/1.1\r\nHost: ${host}\r\nConnection: close\r\n\r\n`);
    await new Promise((resolve) => socket.once('close', resolve));
    assert.match(answer, new RegExp(`^HTTP/1\\.1 ${status} `));
  };
}
