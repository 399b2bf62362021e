import type { TransportKind } from '@weir/proxy';
import { UsageError } from '@weir/runtime';
import type { Terminal } from '../terminal.ts';

/** Parses WEIR_TRANSPORT; undefined if the variable is not set. */
export async function transportFrom({ WEIR_TRANSPORT }: Terminal['env']): Promise<TransportKind | undefined> {
  if (WEIR_TRANSPORT === undefined || WEIR_TRANSPORT === '') return undefined;
  const { TRANSPORT_KINDS } = await import('@weir/proxy');
  const kind = TRANSPORT_KINDS.find((each) => each === WEIR_TRANSPORT);
  if (kind === undefined)
    throw new UsageError(`invalid WEIR_TRANSPORT "${WEIR_TRANSPORT}": expected one of ${TRANSPORT_KINDS.join(', ')}`);
  return kind;
}
