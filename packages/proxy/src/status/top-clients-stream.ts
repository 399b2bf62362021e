import { type AdminStream, jsonResponse } from '@weir/runtime';
import type { ClientReports } from '../supervisor/client-reports.ts';

const OFF = { error: 'this proxy does not count clients; set WEIR_TOP_CLIENTS=true' };

/**
 * Responds to `/top-clients?tenant=TENANT` with the clients of the tenant that have the most bytes and connections.
 * `reports` is undefined if clients are not counted.
 */
export function topClientsStream(reports: ClientReports | undefined): AdminStream {
  return (query, response) => {
    const tenant = query.get('tenant') ?? '';
    if (reports === undefined) return jsonResponse(404, OFF);
    if (tenant === '') return jsonResponse(400, { error: 'tenant is missing: expected ?tenant=NAME' });
    reports.read(tenant).then(
      (report) => {
        const { status, contentType, body } =
          report === undefined
            ? jsonResponse(503, { error: 'the workers of this proxy do not answer; try again' })
            : jsonResponse(200, { ...report.clients, missingWorkers: report.missingWorkers });
        response.writeHead(status, { 'content-type': contentType, 'cache-control': 'no-store' }).end(body);
      },
      () => response.destroy(),
    );
    response.on('error', () => response.destroy());
    return undefined;
  };
}
