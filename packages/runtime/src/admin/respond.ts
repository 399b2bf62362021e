import type { IncomingMessage, ServerResponse } from 'node:http';
import { type AdminContent, type AdminResponse, jsonResponse, responseFor } from './answer.ts';

/** Answers one request. `isTrusted`: it may be told all; else whether the process is live and ready, and no more. */
export async function handleAdminRequest(
  request: IncomingMessage,
  response: ServerResponse,
  { content, isTrusted }: { readonly content: AdminContent; readonly isTrusted: boolean },
): Promise<void> {
  const isRead = request.method === 'GET' || request.method === 'HEAD';
  const answer: AdminResponse = isRead
    ? await responseFor(request.url ?? '', content, isTrusted ? 'all' : 'probes')
    : jsonResponse(405, { error: 'only GET is answered here' });
  response.writeHead(answer.status, {
    'content-type': answer.contentType,
    'content-length': Buffer.byteLength(answer.body),
    'cache-control': 'no-store',
    'x-content-type-options': 'nosniff',
    ...(answer.status === 401 ? { 'www-authenticate': 'Bearer realm="weir"' } : {}),
    // A body that nobody reads would be taken for the next request.
    ...(isRead ? {} : { allow: 'GET, HEAD', connection: 'close' }),
  });
  response.end(request.method === 'HEAD' ? undefined : answer.body);
}
