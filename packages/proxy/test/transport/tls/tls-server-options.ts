import { TlsContexts } from '../../../src/protocol/tls-contexts.ts';
import type { TlsServerOptions } from '../../../src/transport/tls/tls-stream.ts';
import { certificateEntryFor, SEALER, SERVER } from '../../fixtures/certificates.ts';

/** Returns the server options of a Service with the test certificate. */
export function testTlsServerOptions(): TlsServerOptions {
  const contexts = new TlsContexts({ sealer: SEALER, now: Date.now, onCertificateFault: () => undefined });
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
