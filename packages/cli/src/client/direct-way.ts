import { readFileSync } from 'node:fs';
import { errorMessage, isLoopback, UsageError } from '@weir/runtime';
import { sendRequest, type Transport } from './way.ts';

export interface DirectTransportOptions {
  readonly server: string;
  readonly token?: string | undefined;
  /** Path of a PEM file: the authority of the server's certificate. */
  readonly caFile?: string | undefined;
  /** The token may go over http to another machine. */
  readonly allowPlainHttp?: boolean | undefined;
}

const DIRECT_HINTS = {
  unreachable: 'start one with `weir standalone -f DIR`, or say where it is with --server URL or WEIR_SERVER',
  notAConsole: 'check --server or WEIR_SERVER',
  untrusted: 'name the authority of its certificate by --ca-file',
};

/** To a console by its URL. */
export function directTransport({ server, token, caFile, allowPlainHttp = false }: DirectTransportOptions): Transport {
  const base = parseServerUrl(server);
  const ca = caFile === undefined ? undefined : readOptionFile('--ca-file', caFile);
  if (ca !== undefined && base.protocol === 'http:') {
    throw new UsageError(`--ca-file is for https, and --server (or WEIR_SERVER) is ${base.href}`);
  }
  if (token !== undefined && !allowPlainHttp && base.protocol === 'http:' && !isLoopback(hostWithoutBrackets(base))) {
    throw new UsageError(
      `--server (or WEIR_SERVER) is ${base.href}, and the token would go there in the clear; use https, reach the console through loopback (kubectl port-forward), or say --plain-http`,
    );
  }
  return {
    baseUrl: base.href,
    hints: DIRECT_HINTS,
    send: (request) =>
      sendRequest({
        url: new URL(request.path.replace(/^\//, ''), base),
        request,
        agent: false,
        ...(ca === undefined ? {} : { ca }),
        headers: token === undefined ? {} : { authorization: `Bearer ${token}` },
      }),
  };
}

export function readOptionFile(option: string, path: string): string {
  try {
    return readFileSync(path, 'utf8');
  } catch (error) {
    throw new UsageError(`${option} is ${path}, which cannot be read (${errorMessage(error)})`);
  }
}

/** Without the brackets of an IPv6 address. */
function hostWithoutBrackets({ hostname }: URL): string {
  return hostname.replace(/^\[|\]$/g, '');
}

function parseServerUrl(text: string): URL {
  const url = URL.canParse(text) ? new URL(text) : undefined;
  if (url !== undefined && url.username + url.password !== '') {
    throw new UsageError(
      '--server (or WEIR_SERVER) holds a user or password, which a console does not take; leave them out',
    );
  }
  if (url === undefined || !/^https?:$/.test(url.protocol)) {
    throw new UsageError(`--server (or WEIR_SERVER) is "${text}"; use a URL such as http://127.0.0.1:8686`);
  }
  if (!url.pathname.endsWith('/')) url.pathname += '/';
  return url;
}
