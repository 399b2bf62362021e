import { type AdminStream, jsonResponse } from '@weir/runtime';
import type { LogHub } from '../access-log/log-hub.ts';

/** The interval of the empty lines, by which both sides notice a lost connection. */
const KEEP_ALIVE_MS = 10_000;

/**
 * Responds to `/access-log?service=NAMESPACE/NAME` with all further lines of the Service's access log, and with an
 * empty line every `KEEP_ALIVE_MS`.
 */
export function accessLogStream(hub: LogHub): AdminStream {
  return (query, response) => {
    const service = query.get('service') ?? '';
    if (!/^[^/]+\/[^/]+$/.test(service))
      return jsonResponse(400, { error: `invalid service "${service}": expected NAMESPACE/NAME` });
    const stop = hub.follow(service, response);
    if (stop === undefined)
      return jsonResponse(503, { error: 'too many clients follow access logs of this proxy; close one and try again' });
    response.writeHead(200, {
      'content-type': 'application/x-ndjson',
      'cache-control': 'no-store',
      'x-content-type-options': 'nosniff',
      connection: 'close',
    });
    response.write('\n');
    const keepAlive = setInterval(() => response.write('\n'), KEEP_ALIVE_MS);
    response.on('error', () => response.destroy());
    response.once('close', () => {
      clearInterval(keepAlive);
      stop();
    });
    return undefined;
  };
}
