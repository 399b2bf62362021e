import type { Counters } from '@weir/model';
import { Fields, type TextFormat } from '../snapshot/fields.ts';
import { COUNT, TIMESTAMP } from '../snapshot/formats.ts';
import type { IncarnationUsage, ServiceUsageEntry, TenantUsage } from './tenant-usage.ts';

const NON_EMPTY_TEXT: TextFormat = { allowed: 'text', matches: (text) => text !== '' };

/** Undefined: not written by a controller of ours, or by a newer one in a way that this one does not know. */
export function parseTenantUsage(raw: unknown): TenantUsage | undefined {
  const mistakes: string[] = [];
  const fields = new Fields(raw, mistakes);
  const status = fields.object('status');
  const usage = {
    namespace: fields.object('metadata').requiredText('namespace', NON_EMPTY_TEXT),
    status: {
      updatedAt: status.requiredText('updatedAt', TIMESTAMP),
      months: status.objects('months').map((month) => ({
        month: month.requiredText('month', NON_EMPTY_TEXT),
        services: month.objects('services').map(readService),
      })),
      lives: status.objects('lives').map(readIncarnation),
    },
  };
  return mistakes.length === 0 ? usage : undefined;
}

function readService(fields: Fields): ServiceUsageEntry {
  return { ...readSlot(fields), name: fields.requiredText('name', NON_EMPTY_TEXT), ...readCounters(fields) };
}

function readIncarnation(fields: Fields): IncarnationUsage {
  const node = fields.requiredText('node', NON_EMPTY_TEXT);
  return { ...readSlot(fields), node, life: fields.requiredInteger('life', COUNT), ...readCounters(fields) };
}

function readSlot(fields: Fields): { readonly uid: string; readonly tenant: string } {
  return { uid: fields.requiredText('uid', NON_EMPTY_TEXT), tenant: fields.requiredText('tenant', NON_EMPTY_TEXT) };
}

function readCounters(fields: Fields): Counters {
  return {
    receivedBytes: fields.requiredInteger('receivedBytes', COUNT),
    sentBytes: fields.requiredInteger('sentBytes', COUNT),
    connections: fields.requiredInteger('connections', COUNT),
    requests: fields.requiredInteger('requests', COUNT),
  };
}
