import type { TransportKind } from '@weir/proxy';
import { oneOf, optional, parseConfig } from '@weir/runtime';
import type { Terminal } from '../terminal.ts';

/** Parses WEIR_TRANSPORT as a proxy does; undefined if the variable is not set. */
export async function transportFrom(env: Terminal['env']): Promise<TransportKind | undefined> {
  const { TRANSPORT_KINDS } = await import('@weir/proxy');
  return parseConfig({ transport: optional(oneOf('WEIR_TRANSPORT', TRANSPORT_KINDS)) }, env).transport;
}
