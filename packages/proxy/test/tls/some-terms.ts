import { SecureContexts } from '../../src/tls/secure-contexts.ts';
import type { TlsTerms } from '../../src/tls/tls-stream.ts';
import { entryOf, SEALER, SERVER } from '../fixtures/certificates.ts';

/** The terms of any Service. */
export function someTerms(): TlsTerms {
  const contexts = new SecureContexts({ sealer: SEALER, now: Date.now, onUnusable: () => undefined });
  const entry = { kind: 'certificate' as const, id: 'certificate/uid', service: 'uid', ...entryOf(SERVER) };
  const route = {
    certificate: entry,
    service: { namespace: 'shop', name: 'web' },
    settings: {},
    listener: { protocol: 'TCP' },
  };
  const terms = contexts.termsFor(route as unknown as Parameters<SecureContexts['termsFor']>[0]);
  if (terms === undefined) throw new Error('no terms');
  return terms;
}
