import { TlsContexts } from '../../../src/protocol/tls-contexts.ts';
import { nodeTlsServer } from '../../../src/transport/tls/node-tls-stream.ts';
import type { TlsServer, TlsServerOptions } from '../../../src/transport/tls/tls-server.ts';
import { certificateEntryFor, SEALER, SERVER } from '../../fixtures/certificates.ts';

/** Returns the server options of a Service with the test certificate. */
export function testTlsServerOptions(server: TlsServer = nodeTlsServer): TlsServerOptions {
  const contexts = new TlsContexts({ server, sealer: SEALER, now: Date.now, onCertificateFault: () => undefined });
  const entry = { kind: 'certificate' as const, id: 'certificate/uid', service: 'uid', ...certificateEntryFor(SERVER) };
  const route = {
    certificates: [entry],
    service: { namespace: 'shop', name: 'web' },
    settings: {},
    listener: { protocol: 'TCP' },
  };
  const serverOptions = contexts.serverOptionsFor(route as unknown as Parameters<TlsContexts['serverOptionsFor']>[0]);
  if (serverOptions === undefined) throw new Error('no serverOptions');
  return serverOptions;
}
