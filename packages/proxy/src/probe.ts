// The program of an exec probe, which asks the proxy of this container over the probe socket. Exit codes: 0 if the
// proxy is ready (or live), 1 if the proxy is not ready (or live) or does not respond, 2 for wrong usage. Loads only
// `node:net`, because the kubelet runs this program every few seconds.
const { connect } = process.getBuiltinModule('node:net');

const PATHS: Readonly<Record<string, string>> = { ready: '/readyz', live: '/healthz' };
const RESPONSE_TIMEOUT_MS = 5_000;

function exit(code: 0 | 1 | 2, line: string): void {
  process.stdout.write(`${line}\n`);
  process.exitCode = code;
}

function request(socketPath: string, path: string): void {
  let response = '';
  const socket = connect({ path: socketPath }, () => socket.write(`GET ${path} HTTP/1.0\r\n\r\n`));
  socket.setEncoding('utf8');
  socket.on('data', (text) => {
    response += text;
  });
  socket.on('error', (error) => exit(1, `no proxy answers on ${socketPath}: ${error.message}`));
  socket.on('end', () => {
    socket.destroy();
    reportResponse(response);
  });
  socket.setTimeout(RESPONSE_TIMEOUT_MS, () => {
    socket.destroy();
    exit(1, `the proxy has not answered for ${RESPONSE_TIMEOUT_MS / 1_000} s`);
  });
}

function reportResponse(response: string): void {
  const status = /^HTTP\/1\.1 (\d+) /.exec(response)?.[1];
  if (status === '200') {
    exit(0, 'ok');
    return;
  }
  const reasons = parseReasons(response.slice(response.indexOf('\r\n\r\n')));
  exit(1, reasons ?? `the proxy answered with status ${status ?? 'none'}`);
}

function parseReasons(body: string): string | undefined {
  try {
    const { reasons } = JSON.parse(body) as { reasons: readonly { readonly reason: string }[] };
    return reasons.map(({ reason }) => reason).join('; ');
  } catch {
    return undefined;
  }
}

const [what = 'ready', ...others] = process.argv.slice(2);
const path = Object.hasOwn(PATHS, what) ? PATHS[what] : undefined;
const socketPath = process.env.WEIR_PROBE_SOCKET ?? '';
if (path === undefined || others.length > 0) exit(2, 'weir-probe: expected one argument, ready (the default) or live');
else if (socketPath === '')
  exit(2, 'weir-probe: WEIR_PROBE_SOCKET is not set; set it to the same path as for the proxy');
else request(socketPath, path);
