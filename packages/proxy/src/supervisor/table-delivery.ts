// How a routing table reaches a worker without delaying the connections of that worker (this side; the worker's side is
// worker/table-delivery.ts):
// 1. A large table is packed once for all workers into shared memory: batches of JSON, each applied in about 0.2 ms.
// 2. A worker applies commands in slices of at most 1 ms, and decodes a Service only when its first client connects.
// 3. While a worker lags, commands for it wait here and are merged, so neither memory nor delay grows with the changes.
import {
  type AtomicGroup,
  atomicGroupsFor,
  type Change,
  type Entry,
  type RouteKey,
  routeKey,
} from '@weir/model/data-plane';
import type { LimiterRows } from '../limits/admission.ts';
import type { LazyService, PackedTableCommand, SentCommand, TableCommand, WorkerCommand } from '../worker/messages.ts';

/**
 * The number of unanswered marks at which a worker counts as lagging. It is high enough that a worker never waits for
 * the main thread between two marks.
 */
const MAX_UNANSWERED_MARKS = 8;
/**
 * The minimum number of waiting commands before they are merged. Merging costs as much as the merged commands, so it
 * does not run for each command.
 */
const MIN_COMMANDS_TO_MERGE = 256;

/** The commands for one worker. Sends each command at once while the worker keeps up, and merges them while it lags. */
export class CommandQueue {
  readonly #send: (command: WorkerCommand) => void;
  #pending: WorkerCommand[] = [];
  #mergeAt = MIN_COMMANDS_TO_MERGE;
  #unansweredMarks = 0;

  constructor(send: (command: WorkerCommand) => void) {
    this.#send = send;
  }

  /** The number of commands that are not sent yet. */
  get length(): number {
    return this.#pending.length;
  }

  post(command: WorkerCommand): void {
    // Suspensions take effect at once: they refer to no listener and no endpoint, so they need no table before them.
    if (command.kind === 'suspensions' || (this.#pending.length === 0 && !this.#isLagging)) {
      this.#sendNow(command);
      return;
    }
    this.#pending.push(command);
    if (this.#pending.length < this.#mergeAt) return;
    this.#pending = mergeCommands(this.#pending);
    this.#mergeAt = Math.max(MIN_COMMANDS_TO_MERGE, 2 * this.#pending.length);
  }

  /** To be called when the worker has answered a mark. */
  onMarkReached(): void {
    this.#unansweredMarks -= 1;
    if (this.#isLagging) return;
    const due = mergeCommands(this.#pending);
    this.#pending = [];
    for (const command of due) this.#sendNow(command);
  }

  get #isLagging(): boolean {
    return this.#unansweredMarks >= MAX_UNANSWERED_MARKS;
  }

  #sendNow(command: WorkerCommand): void {
    if (command.kind === 'mark') this.#unansweredMarks += 1;
    this.#send(command);
  }
}

/** Returns fewer commands that leave a worker in the same state as `commands`. */
export function mergeCommands(commands: readonly WorkerCommand[]): WorkerCommand[] {
  const merged: (WorkerCommand | MergedTable | undefined)[] = [];
  const openIndexes = new Map<number, number>();
  const healthIndexes = new Map<string, number>();
  let table: MergedTable | undefined;
  let lastMark: WorkerCommand | undefined;
  for (const command of commands) {
    switch (command.kind) {
      case 'table':
        if (table === undefined) {
          table = new MergedTable();
          merged.push(table);
        }
        table.add(command);
        break;
      case 'mark':
        // The answer to the last mark implies the marks before it.
        lastMark = command;
        break;
      case 'health': {
        const listeners = command.listeners.join();
        const earlier = healthIndexes.get(listeners);
        if (earlier !== undefined) merged[earlier] = undefined;
        table = undefined;
        healthIndexes.set(listeners, merged.push(command) - 1);
        break;
      }
      case 'open-listener':
        openIndexes.set(command.listener.id, merged.push(command) - 1);
        break;
      case 'close-listener': {
        const opened = openIndexes.get(command.listener.id);
        if (opened === undefined) merged.push(command);
        else merged[opened] = undefined;
        break;
      }
      default:
        // This command needs the table as it is now, or the next table needs this command: merge no table across it.
        table = undefined;
        merged.push(command);
    }
  }
  merged.push(lastMark);
  return merged.flatMap((each) => (each instanceof MergedTable ? [each.command] : (each ?? [])));
}

/**
 * Table commands merged into one: the last change of each entry, and the last slot and limiter rows of each Service.
 */
class MergedTable {
  readonly #changes = new Map<string, Change>();
  readonly #slots = new Map<string, number>();
  readonly #limits = new Map<string, LimiterRows>();
  /**
   * Every Service that owned a resource at some time, by resource. A Service that owned it only in between makes an
   * atomic group larger, but not wrong.
   */
  readonly #movedResources = new Map<string, Set<string>>();
  #isFirst: boolean = true;

  add({ changes, slots, limits = [], movedResources = [], isFirst }: TableCommand): void {
    this.#isFirst &&= isFirst === true;
    for (const change of changes) this.#changes.set(change.kind === 'put' ? change.entry.id : change.id, change);
    for (const [uid, slot] of slots) this.#slots.set(uid, slot);
    for (const rows of limits) this.#limits.set(rows[0], rows);
    for (const [resource, uid] of movedResources)
      this.#movedResources.set(resource, (this.#movedResources.get(resource) ?? new Set()).add(uid));
  }

  get command(): TableCommand {
    const limits = [...this.#limits.values()];
    const changes = [...this.#changes.values()];
    const movedResources = [...this.#movedResources].flatMap(([resource, uids]) =>
      [...uids].map((uid) => [resource, uid] as const),
    );
    const command: TableCommand = { kind: 'table', changes, slots: [...this.#slots], limits, movedResources };
    return this.#isFirst ? { ...command, isFirst: true } : command;
  }
}

/** The maximum weight of a batch. A worker applies such a batch in about 0.2 ms. */
const MAX_BATCH_WEIGHT = 16;
/** The maximum weight of a part, which the main thread applies with its listeners in one step. */
const MAX_PART_WEIGHT = 400;
const ENDPOINTS_PER_WEIGHT = 8;
/**
 * So many source ranges and hosts count as one unit of weight. They cost little, because they are compiled only when
 * the first client connects.
 */
const STRINGS_PER_WEIGHT = 200;
/**
 * So many characters of PEM count as one unit of weight. A certificate entry has some thousand characters, or up to a
 * hundred thousand if its tenant lists many CAs.
 */
const PEM_CHARACTERS_PER_WEIGHT = 6_000;

const packedByCommand = new WeakMap<TableCommand, SentCommand>();
const groupsByPart = new WeakMap<TableCommand, readonly AtomicGroup[]>();

/** Returns the command as it is sent: a large table is packed, once for all workers. */
export function packTable(command: WorkerCommand): SentCommand {
  if (command.kind !== 'table' || command.changes.length <= 1 || weightOf(command.changes) <= MAX_BATCH_WEIGHT)
    return command;
  let packed = packedByCommand.get(command);
  if (packed === undefined) {
    // A first table has one batch for each Service, so that each Service can be decoded alone.
    packed = command.isFirst ? packLazily(batchesOf(command, 0)) : pack(batchesOf(command, MAX_BATCH_WEIGHT));
    packedByCommand.set(command, packed);
  }
  return packed;
}

/** Splits a large table into commands that lead to the same state. All changes of one Service stay in one command. */
export function splitTable(command: TableCommand): TableCommand[] {
  if (weightOf(command.changes) <= MAX_PART_WEIGHT) return [command];
  return batchesOf(command, MAX_PART_WEIGHT).map((part) => {
    groupsByPart.set(part.command, part.groups);
    return part.command;
  });
}

interface TableBatch {
  readonly command: TableCommand;
  readonly groups: readonly AtomicGroup[];
}

function batchesOf(command: TableCommand, maxWeight: number): TableBatch[] {
  const { changes, slots, limits, movedResources = [], isFirst } = command;
  const remainingSlots = new Map(slots.map((slot) => [slot[0], slot]));
  const remainingLimits = new Map((limits ?? []).map((rows) => [rows[0], rows]));
  const movedByService = Map.groupBy(movedResources, ([, service]) => service);
  const batchOf = (groups: readonly AtomicGroup[]): TableBatch => ({
    command: {
      kind: 'table',
      changes: groups.flatMap((group) => group.changes),
      slots: takeFrom(remainingSlots, groups),
      limits: takeFrom(remainingLimits, groups),
      movedResources: groups.flatMap(({ services }) => services.flatMap((uid) => movedByService.get(uid) ?? [])),
      ...(isFirst && { isFirst }),
    },
    groups,
  });
  const groups = groupsByPart.get(command) ?? atomicGroupsFor(changes, movedResources);
  const batches = bundleGroups(groups, maxWeight).map(batchOf);
  if (remainingSlots.size === 0 && remainingLimits.size === 0) return batches;
  const withoutChanges: TableCommand = {
    kind: 'table',
    changes: [],
    slots: [...remainingSlots.values()],
    limits: [...remainingLimits.values()],
  };
  return [{ command: withoutChanges, groups: [] }, ...batches];
}

function takeFrom<T extends TableCommand['slots'][number] | LimiterRows>(
  remaining: Map<string, T>,
  groups: readonly AtomicGroup[],
): T[] {
  const taken: T[] = [];
  for (const { services } of groups) {
    for (const uid of services) {
      const found = remaining.get(uid);
      if (found === undefined) continue;
      remaining.delete(uid);
      taken.push(found);
    }
  }
  return taken;
}

/**
 * Combines atomic groups into bundles of at most `maxWeight`. A group is never split, so a Service with very many
 * endpoints exceeds `maxWeight` in its own bundle.
 */
function bundleGroups(groups: readonly AtomicGroup[], maxWeight: number): AtomicGroup[][] {
  const bundles: AtomicGroup[][] = [];
  let bundleWeight = Number.POSITIVE_INFINITY;
  for (const group of groups) {
    const weight = weightOf(group.changes);
    bundleWeight += weight;
    if (bundleWeight > maxWeight) {
      bundles.push([]);
      bundleWeight = weight;
    }
    bundles.at(-1)?.push(group);
  }
  return bundles;
}

function weightOf(changes: readonly Change[]): number {
  let weight = 0;
  for (const change of changes) {
    weight += 1;
    if (change.kind === 'put') weight += extraWeightOf(change.entry);
  }
  return weight;
}

function extraWeightOf(entry: Entry): number {
  if (entry.kind === 'endpoints') return entry.endpoints.length / ENDPOINTS_PER_WEIGHT;
  if (entry.kind === 'certificate')
    return (entry.chain.length + (entry.clientAuthorities?.length ?? 0)) / PEM_CHARACTERS_PER_WEIGHT;
  if (entry.kind !== 'service' || entry.settings === null) return 0;
  return (entry.settings.sourceRanges.length + entry.settings.hosts.length) / STRINGS_PER_WEIGHT;
}

function pack(batches: readonly TableBatch[]): PackedTableCommand {
  // Workers need neither `movedResources` nor `isFirst`: both only decide how a table is divided.
  const texts = batches.map(({ command: { movedResources: _moved, isFirst: _isFirst, ...batch } }) =>
    JSON.stringify(batch),
  );
  const ends = new Uint32Array(texts.length);
  let end = 0;
  texts.forEach((text, index) => {
    end += Buffer.byteLength(text);
    ends[index] = end;
  });
  const bytes = new Uint8Array(new SharedArrayBuffer(end));
  const buffer = Buffer.from(bytes.buffer);
  texts.forEach((text, index) => {
    buffer.write(text, ends[index - 1] ?? 0);
  });
  return { kind: 'packed-table', bytes, ends };
}

function packLazily(batches: readonly TableBatch[]): PackedTableCommand {
  return { ...pack(batches), lazyServices: batches.map(lazyServiceOf) };
}

/**
 * Returns the only Service of a batch, which can be decoded late. Returns null for several Services, a deletion, or a
 * shared listener, because a shared listener needs the host names of all its Services.
 */
function lazyServiceOf({ command: { changes }, groups: [group] }: TableBatch): LazyService | null {
  const [service, ...others] = group?.services ?? [];
  if (service === undefined || others.length > 0) return null;
  const routes: RouteKey[] = [];
  for (const change of changes) {
    if (change.kind === 'delete') return null;
    if (change.entry.kind !== 'listener') continue;
    if (change.entry.shared === true) return null;
    routes.push(routeKey(change.entry));
  }
  return [service, ...routes];
}
