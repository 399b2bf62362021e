// Reads responses of a proxy's admin server: an endless response line by line, or a response that ends.
import { readFile } from 'node:fs/promises';
import http from 'node:http';
import https from 'node:https';
import type { AdminAddress } from '@weir/model';
import { errorMessage, isLoopback, type Secret } from '@weir/runtime';

/** How the console signs in to the admin servers of the proxies. */
export interface ProxyAdminAccess {
  readonly token?: Secret | undefined;
  /** Path of a PEM file with the CA of the admin servers' certificates; by default the CAs of Node.js. */
  readonly ca?: string | undefined;
  /** The name in the certificates; by default the address of the admin server. */
  readonly serverName?: string | undefined;
}

export interface ProxyStreamOptions {
  readonly address: AdminAddress;
  /** Path and query. */
  readonly path: string;
  readonly access: ProxyAdminAccess;
  readonly signal: AbortSignal;
  /** Called with complete lines, each with its newline. */
  onLines(lines: Uint8Array): void;
}

/** A stream without bytes for this long is broken, because a proxy sends an empty line every 10 s. */
const IDLE_TIMEOUT_MS = 30_000;
/** A proxy writes no longer line. */
const MAX_LINE_BYTES = 65_536;
const NEWLINE = 0x0a;

/** Reads until the proxy ends the response or `signal` aborts. Throws if the proxy does not answer with a stream. */
export async function readProxyStream(options: ProxyStreamOptions): Promise<void> {
  const response = await request(options);
  if (response.statusCode !== 200) {
    response.destroy();
    throw new Error(`the admin server of the proxy answered ${response.statusCode}`);
  }
  let rest: Uint8Array = new Uint8Array(0);
  try {
    for await (const chunk of response as AsyncIterable<Uint8Array>) {
      const bytes = rest.length === 0 ? chunk : Buffer.concat([rest, chunk]);
      const end = bytes.lastIndexOf(NEWLINE) + 1;
      if (end > 0) options.onLines(bytes.subarray(0, end));
      rest = bytes.slice(end);
      if (rest.length > MAX_LINE_BYTES) throw new Error('the admin server of the proxy sent a line that is too long');
    }
  } finally {
    response.destroy();
  }
}

const MAX_JSON_BYTES = 1_048_576;

/** Reads one response that ends by itself. */
export async function readProxyJson(
  options: Omit<ProxyStreamOptions, 'onLines'>,
): Promise<{ readonly status: number; readonly body: string }> {
  const response = await request(options);
  const chunks: Uint8Array[] = [];
  let length = 0;
  try {
    for await (const chunk of response as AsyncIterable<Uint8Array>) {
      length += chunk.length;
      if (length > MAX_JSON_BYTES) throw new Error('the admin server of the proxy sent a response that is too long');
      chunks.push(chunk);
    }
  } finally {
    response.destroy();
  }
  return { status: response.statusCode ?? 0, body: Buffer.concat(chunks).toString('utf8') };
}

async function request({
  address,
  path,
  access,
  signal,
}: Omit<ProxyStreamOptions, 'onLines'>): Promise<http.IncomingMessage> {
  const { host, port, tls } = address;
  const { token, ca, serverName } = access;
  if (token !== undefined && !tls && !isLoopback(host))
    throw new Error('its admin server does not use TLS, so the token would be sent unencrypted; set WEIR_ADMIN_TLS');
  const headers = token === undefined ? {} : { authorization: `Bearer ${token.reveal()}` };
  const options = { host, port, path, headers, signal, agent: false as const, timeout: IDLE_TIMEOUT_MS };
  const { promise, resolve, reject } = Promise.withResolvers<http.IncomingMessage>();
  const sent = tls
    ? https.request({
        ...options,
        // Read for each connection, because certificates are renewed.
        ...(ca === undefined ? {} : { ca: await readFile(ca) }),
        ...(serverName === undefined ? {} : { servername: serverName }),
      })
    : http.request(options);
  sent.once('response', resolve);
  sent.once('timeout', () => sent.destroy(new Error(`the admin server sent nothing for ${IDLE_TIMEOUT_MS / 1_000} s`)));
  sent.once('error', (error) => reject(new Error(errorMessage(error), { cause: error })));
  sent.end();
  return promise;
}
