import { FIELD, fieldIdOf } from '../h1/head-fields.ts';
import { asciiBytes, fieldLine, isFieldName, isFieldValue } from './byte-writer.ts';
import type { HeadEdit } from './head-edit.ts';

/** A change of one field that a route asks for. */
export type HeaderFilter =
  | { readonly kind: 'set' | 'add'; readonly name: string; readonly value: string }
  | { readonly kind: 'remove'; readonly name: string };

/** The filters of a route as bytes, compiled once per route. */
export type CompiledFilters = readonly CompiledFilter[];

interface CompiledFilter {
  /** The name in lower case of the fields that are dropped. Undefined if fields are only added. */
  readonly drops: Uint8Array | undefined;
  readonly adds: Uint8Array | undefined;
}

/**
 * The fields that no filter changes: framing, fields of one connection, and Host, which has a rewrite of its own. A wrong
 * value would let an endpoint see other requests than the proxy.
 */
const PROTECTED_IDS: ReadonlySet<number> = new Set([
  FIELD.host,
  FIELD.contentLength,
  FIELD.transferEncoding,
  FIELD.connection,
  FIELD.keepAlive,
  FIELD.proxyConnection,
  FIELD.te,
  FIELD.trailer,
  FIELD.upgrade,
  FIELD.expect,
  FIELD.via,
  FIELD.proxyAuthenticate,
  FIELD.proxyAuthorization,
  FIELD.http2Settings,
  FIELD.underscored,
]);

/**
 * Compiles the filters of a route. Returns the compiled filters in the same order, and the filters that are left out
 * because their field is protected, their name is not a token or their value contains controls.
 */
export function compileHeaderFilters(filters: readonly HeaderFilter[]): {
  readonly compiled: CompiledFilters;
  readonly refused: readonly HeaderFilter[];
} {
  return {
    compiled: filters.filter(isAllowed).map(compileFilter),
    refused: filters.filter((filter) => !isAllowed(filter)),
  };
}

/** Applies the filters in their order. A filter also changes the lines that other passes have appended. */
export function applyHeaderFilters(edit: HeadEdit, filters: CompiledFilters | undefined): void {
  if (filters === undefined) return;
  for (const { drops, adds } of filters) {
    if (drops !== undefined) edit.dropByName(drops);
    if (adds !== undefined) edit.appended.bytes(adds);
  }
}

function isAllowed(filter: HeaderFilter): boolean {
  if (!isFieldName(filter.name) || (filter.kind !== 'remove' && !isFieldValue(filter.value))) return false;
  return !PROTECTED_IDS.has(fieldIdOf(asciiBytes(filter.name), 0, filter.name.length));
}

function compileFilter(filter: HeaderFilter): CompiledFilter {
  return {
    drops: filter.kind === 'add' ? undefined : asciiBytes(filter.name.toLowerCase()),
    adds: filter.kind === 'remove' ? undefined : fieldLine(filter.name, filter.value),
  };
}
