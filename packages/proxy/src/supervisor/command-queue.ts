import type { Change } from '@weir/model/data-plane';
import type { LimiterRows } from '../limits/admission.ts';
import type { TableCommand, WorkerCommand } from '../worker/messages.ts';

// Orders on their way to one worker. While it keeps up they are sent as they come; while it lags they wait here and are
// merged, so that a table that changes faster than a worker can follow costs neither memory nor ever more delay.

/** So many marks may be on their way: enough never to keep a worker waiting for us. */
const MAX_UNANSWERED_MARKS = 8;
/** Merging costs as much as there is to merge: not for each order. */
const MIN_COMMANDS_TO_MERGE = 256;

export class CommandQueue {
  readonly #send: (order: WorkerCommand) => void;
  #pending: WorkerCommand[] = [];
  #mergeAt = MIN_COMMANDS_TO_MERGE;
  #unansweredMarks = 0;

  constructor(send: (order: WorkerCommand) => void) {
    this.#send = send;
  }

  /** Orders that wait. */
  get length(): number {
    return this.#pending.length;
  }

  post(order: WorkerCommand): void {
    // Cut-offs name no listener and no endpoint: they need not wait for any table, and must not.
    if (order.kind === 'suspensions' || (this.#pending.length === 0 && this.#unansweredMarks < MAX_UNANSWERED_MARKS)) {
      this.#sendNow(order);
      return;
    }
    this.#pending.push(order);
    if (this.#pending.length < this.#mergeAt) return;
    this.#pending = mergeCommands(this.#pending);
    this.#mergeAt = Math.max(MIN_COMMANDS_TO_MERGE, 2 * this.#pending.length);
  }

  /** The worker has answered a mark. */
  onMarkAnswered(): void {
    this.#unansweredMarks -= 1;
    if (this.#unansweredMarks >= MAX_UNANSWERED_MARKS) return;
    const due = mergeCommands(this.#pending);
    this.#pending = [];
    for (const order of due) this.#sendNow(order);
  }

  #sendNow(order: WorkerCommand): void {
    if (order.kind === 'mark') this.#unansweredMarks += 1;
    this.#send(order);
  }
}

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
      case 'open-listener':
        listens.set(order.listener.id, merged.push(order) - 1);
        break;
      case 'close-listener': {
        const at = listens.get(order.listener.id);
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
