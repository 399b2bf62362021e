// Sends the routing table to the workers without delaying their connections. worker/table-delivery.ts is the receiving
// side.
// 1. A large table is packed into shared memory once for all workers, as batches of JSON. A worker applies one batch in
//    about 0.2 ms.
// 2. A worker applies commands in slices of at most 1 ms, and decodes a Service only when its first client connects.
// 3. While a worker lags, its commands wait here and are merged, so that memory and delay do not grow with each change.
import {
  type AtomicGroup,
  atomicGroupsFor,
  type Change,
  type Entry,
  type ErrorPagesEntry,
  type RouteKey,
  routeKey,
} from '@weir/model/data-plane';
import type { LimiterRows } from '../limits/admission.ts';
import type { LazyService, PackedTableCommand, SentCommand, TableCommand, WorkerCommand } from '../worker/messages.ts';

/**
 * The number of unanswered marks at which a worker counts as lagging. The number is high enough that a worker never has
 * to wait for the main thread between two marks.
 */
const MAX_UNANSWERED_MARKS = 8;
/**
 * Waiting commands are merged only if there are at least this many of them. Merging takes time for every waiting
 * command, so it must not run each time a command is added.
 */
const MIN_COMMANDS_TO_MERGE = 256;

/**
 * The queue of commands for one worker. Sends each command at once while the worker keeps up. Collects and merges
 * commands while the worker lags.
 */
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
    // Suspensions are sent before waiting commands. Suspensions refer to no listener and no endpoint, so they do not
    // depend on earlier commands.
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

/** Returns a list of fewer commands that leaves a worker in the same state as `commands`. */
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
        // An answer to the last mark also answers all earlier marks.
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
        // Tables before and after this command are not merged, because this command may depend on an earlier table, or
        // a later table may depend on this command.
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
   * For each resource, every Service that owned the resource before one of the merged commands or after it. A Service
   * that owned the resource only temporarily makes an atomic group larger than necessary, which does no harm.
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

/**
 * The maximum weight of a batch, as computed by `weightOf`. A worker applies a batch of this weight in about 0.2 ms.
 */
const MAX_BATCH_WEIGHT = 16;
/**
 * The maximum weight of a part of a table. The main thread applies one part in one step, and opens or closes the
 * listeners of this part.
 */
const MAX_PART_WEIGHT = 400;
const ENDPOINTS_PER_WEIGHT = 8;
/**
 * The number of source ranges and hosts that count as one unit of weight. Source ranges and hosts cost little, because
 * they are compiled only when the first client connects.
 */
const STRINGS_PER_WEIGHT = 200;
/**
 * The number of PEM characters that count as one unit of weight. A certificate entry has a few thousand characters, or
 * up to 100,000 if its tenant lists many CAs.
 */
const PEM_CHARACTERS_PER_WEIGHT = 6_000;

const packedByCommand = new WeakMap<TableCommand, SentCommand>();
const groupsByPart = new WeakMap<TableCommand, readonly AtomicGroup[]>();

/** Returns the command in the form in which it is sent. A large table is packed once for all workers. */
export function packTable(command: WorkerCommand): SentCommand {
  if (command.kind !== 'table' || command.changes.length <= 1 || weightOf(command.changes) <= MAX_BATCH_WEIGHT)
    return command;
  let packed = packedByCommand.get(command);
  if (packed === undefined) {
    // A first table gets a separate batch for each Service, so that a worker can decode each Service separately.
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
 * Combines atomic groups into bundles of at most `maxWeight`. A group is never split. A group that is heavier than
 * `maxWeight`, such as a Service with very many endpoints, is the only group in its bundle.
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
    return (
      (entry.chain.length + (entry.clientAuthorities?.length ?? 0) + (entry.backendAuthorities?.length ?? 0)) /
      PEM_CHARACTERS_PER_WEIGHT
    );
  if (entry.kind === 'http-route') return (entry.route.hosts.length + entry.route.matches.length) / STRINGS_PER_WEIGHT;
  if (entry.kind === 'error-pages') return errorPagesLength(entry) / PEM_CHARACTERS_PER_WEIGHT;
  if (entry.kind !== 'service' || entry.settings === null) return 0;
  return (entry.settings.sourceRanges.length + entry.settings.hosts.length) / STRINGS_PER_WEIGHT;
}

function errorPagesLength({ pages }: ErrorPagesEntry): number {
  return Object.values(pages).reduce((sum, { length }) => sum + length, 0);
}

function pack(batches: readonly TableBatch[]): PackedTableCommand {
  // Omits `movedResources` and `isFirst`, because they only decide how a table is divided, and workers do not need
  // them.
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
 * Returns the Service of a batch if a worker may decode the batch late. Returns null if the batch has several Services,
 * deletes an entry, or has a shared listener or an HTTP route. A shared listener needs the host names of all its Services
 * and HTTP routes, whether the backends of these routes have a shared listener on this node or not.
 */
function lazyServiceOf({ command: { changes }, groups: [group] }: TableBatch): LazyService | null {
  const [service, ...others] = group?.services ?? [];
  if (service === undefined || others.length > 0) return null;
  const routes: RouteKey[] = [];
  for (const change of changes) {
    if (change.kind === 'delete' || change.entry.kind === 'http-route') return null;
    if (change.entry.kind !== 'listener') continue;
    if (change.entry.shared === true) return null;
    routes.push(routeKey(change.entry));
  }
  return [service, ...routes];
}
