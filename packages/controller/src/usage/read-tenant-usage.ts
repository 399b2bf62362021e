import type { Counters } from '@weir/model';
import { Fields, type TextFormat } from '../snapshot/fields.ts';
import { COUNT, TIMESTAMP } from '../snapshot/formats.ts';
import type { LifeUsage, ServiceUsage, TenantUsage } from './tenant-usage.ts';

const ANY: TextFormat = { allowed: 'text', matches: (text) => text !== '' };

/** Undefined: not written by a controller of ours, or by a newer one in a way that this one does not know. */
export function readTenantUsage(raw: unknown): TenantUsage | undefined {
  const mistakes: string[] = [];
  const fields = new Fields(raw, mistakes);
  const status = fields.object('status');
  const usage = {
    namespace: fields.object('metadata').requiredText('namespace', ANY),
    status: {
      updatedAt: status.requiredText('updatedAt', TIMESTAMP),
      months: status.objects('months').map((month) => ({
        month: month.requiredText('month', ANY),
        services: month.objects('services').map(readService),
      })),
      lives: status.objects('lives').map(readLife),
    },
  };
  return mistakes.length === 0 ? usage : undefined;
}

function readService(fields: Fields): ServiceUsage {
  return { ...readSlot(fields), name: fields.requiredText('name', ANY), ...readCounters(fields) };
}

function readLife(fields: Fields): LifeUsage {
  const node = fields.requiredText('node', ANY);
  return { ...readSlot(fields), node, life: fields.requiredInteger('life', COUNT), ...readCounters(fields) };
}

function readSlot(fields: Fields): { readonly uid: string; readonly tenant: string } {
  return { uid: fields.requiredText('uid', ANY), tenant: fields.requiredText('tenant', ANY) };
}

function readCounters(fields: Fields): Counters {
  return {
    receivedBytes: fields.requiredInteger('receivedBytes', COUNT),
    sentBytes: fields.requiredInteger('sentBytes', COUNT),
    connections: fields.requiredInteger('connections', COUNT),
    requests: fields.requiredInteger('requests', COUNT),
  };
}
