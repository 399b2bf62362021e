import type { TlsKind, TransportKind } from '@weir/proxy';
import { oneOf, optional, parseConfig } from '@weir/runtime';
import type { Terminal } from '../terminal.ts';

export interface TransportSettings {
  readonly transport?: TransportKind | undefined;
  readonly tls?: TlsKind | undefined;
}

/** Parses WEIR_TRANSPORT and WEIR_TLS as a proxy does. */
export async function transportSettingsFrom(env: Terminal['env']): Promise<TransportSettings> {
  const { TLS_KINDS, TRANSPORT_KINDS } = await import('@weir/proxy');
  return parseConfig(
    { transport: optional(oneOf('WEIR_TRANSPORT', TRANSPORT_KINDS)), tls: optional(oneOf('WEIR_TLS', TLS_KINDS)) },
    env,
  );
}
