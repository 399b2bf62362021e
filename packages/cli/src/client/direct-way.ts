import { readFileSync } from 'node:fs';
import { errorMessage, isLoopback, UsageError } from '@weir/runtime';
import { sendTo, type Way } from './way.ts';

export interface DirectOptions {
  readonly server: string;
  readonly token?: string | undefined;
  /** Path of a PEM file: the authority of the server's certificate. */
  readonly caFile?: string | undefined;
  /** The token may go over http to another machine. */
  readonly plainHttp?: boolean | undefined;
}

const ADVICE = {
  nobody: 'start one with `weir standalone -f DIR`, or say where it is with --server URL or WEIR_SERVER',
  another: 'check --server or WEIR_SERVER',
  untrusted: 'name the authority of its certificate by --ca-file',
};

/** To a console by its URL. */
export function directWay({ server, token, caFile, plainHttp = false }: DirectOptions): Way {
  const base = parseServer(server);
  const ca = caFile === undefined ? undefined : readNamed('--ca-file', caFile);
  if (ca !== undefined && base.protocol === 'http:') {
    throw new UsageError(`--ca-file is for https, and --server (or WEIR_SERVER) is ${base.href}`);
  }
  if (token !== undefined && !plainHttp && base.protocol === 'http:' && !isLoopback(hostOf(base))) {
    throw new UsageError(
      `--server (or WEIR_SERVER) is ${base.href}, and the token would go there in the clear; use https, reach the console through loopback (kubectl port-forward), or say --plain-http`,
    );
  }
  return {
    where: base.href,
    advice: ADVICE,
    send: (question) =>
      sendTo({
        url: new URL(question.path.replace(/^\//, ''), base),
        question,
        agent: false,
        ...(ca === undefined ? {} : { ca }),
        headers: token === undefined ? {} : { authorization: `Bearer ${token}` },
      }),
  };
}

export function readNamed(option: string, path: string): string {
  try {
    return readFileSync(path, 'utf8');
  } catch (error) {
    throw new UsageError(`${option} is ${path}, which cannot be read (${errorMessage(error)})`);
  }
}

/** Without the brackets of an IPv6 address. */
function hostOf({ hostname }: URL): string {
  return hostname.replace(/^\[|\]$/g, '');
}

function parseServer(text: string): URL {
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
