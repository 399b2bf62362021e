import type { Change } from '@weir/model/data-plane';
import type { LimiterRows } from '../admit/worker-limits.ts';
import type { TableCommand, WorkerCommand } from '../worker/messages.ts';

/** Fewer orders, after which a worker is where it would be after these. */
export function mergeCommands(orders: readonly WorkerCommand[]): WorkerCommand[] {
  const merged: (WorkerCommand | MergedTable | undefined)[] = [];
  const listens = new Map<number, number>();
  const health = new Map<string, number>();
  let table: MergedTable | undefined;
  let mark: WorkerCommand | undefined;
  for (const order of orders) {
    switch (order.kind) {
      case 'table':
        if (table === undefined) {
          table = new MergedTable();
          merged.push(table);
        }
        table.add(order);
        break;
      case 'mark':
        // The last one says that all before it were followed, too.
        mark = order;
        break;
      case 'health': {
        const known = health.get(order.listeners.join());
        if (known !== undefined) merged[known] = undefined;
        table = undefined;
        health.set(order.listeners.join(), merged.push(order) - 1);
        break;
      }
      case 'listen':
        listens.set(order.door.id, merged.push(order) - 1);
        break;
      case 'unlisten': {
        const at = listens.get(order.door.id);
        if (at === undefined) merged.push(order);
        else merged[at] = undefined;
        break;
      }
      default:
        // It counts on the table of this moment, or the next table on it.
        table = undefined;
        merged.push(order);
    }
  }
  merged.push(mark);
  return merged.flatMap((each) => (each instanceof MergedTable ? [each.command] : (each ?? [])));
}

/** The last change of each entry, the last slot and limits of each Service, and who has or gets what changes hands. */
class MergedTable {
  readonly #changes = new Map<string, Change>();
  readonly #slots = new Map<string, number>();
  readonly #limits = new Map<string, LimiterRows>();
  /** All of each: a host that changes hands has several in one order. Who had it only in between makes a step larger, not wrong. */
  readonly #holders = new Map<string, Set<string>>();
  #isFirst: boolean = true;

  add({ changes, slots, limits = [], holders = [], isFirst }: TableCommand): void {
    this.#isFirst &&= isFirst === true;
    for (const change of changes) this.#changes.set(change.kind === 'put' ? change.entry.id : change.id, change);
    for (const [uid, slot] of slots) this.#slots.set(uid, slot);
    for (const rows of limits) this.#limits.set(rows[0], rows);
    for (const [what, uid] of holders) this.#holders.set(what, (this.#holders.get(what) ?? new Set()).add(uid));
  }

  get command(): TableCommand {
    const limits = [...this.#limits.values()];
    const changes = [...this.#changes.values()];
    const holders = [...this.#holders].flatMap(([what, uids]) => [...uids].map((uid) => [what, uid] as const));
    const order: TableCommand = { kind: 'table', changes, slots: [...this.#slots], limits, holders };
    return this.#isFirst ? { ...order, isFirst: true } : order;
  }
}
