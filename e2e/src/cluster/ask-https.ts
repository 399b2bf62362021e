import { once } from 'node:events';
import type { IncomingMessage } from 'node:http';
import { get } from 'node:https';
import { text } from 'node:stream/consumers';

export interface HttpsRequest {
  readonly url: string;
  /** PEM of the authority that its certificate has to be of, and the name that it has to be for. */
  readonly ca: string;
  readonly servername: string;
  readonly token?: string;
}

export async function getHttps({
  url,
  ca,
  servername,
  token,
}: HttpsRequest): Promise<{ status: number; body: string }> {
  const headers = token === undefined ? {} : { authorization: `Bearer ${token}` };
  const request = get(url, { ca, servername, headers, agent: false, timeout: 10_000 });
  const [response] = (await once(request, 'response')) as [IncomingMessage];
  return { status: response.statusCode ?? 0, body: await text(response) };
}
