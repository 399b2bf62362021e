// Applies the commands of the supervisor in a worker. supervisor/table-delivery.ts is the sending side and explains the
// whole process. Commands are applied in order, for at most 1 ms in one turn of the event loop. Later commands
// therefore wait behind a large table, but connections do not wait. A Service of a packed table stays encoded until its
// first client connects or a later command changes the Service.
import { type Change, entryIdOf, listenerKeyOfEntryId, type RouteKey, serviceOfChange } from '@weir/model/data-plane';
import type { LazyService, PackedTableCommand, SentCommand, TableCommand, WorkerCommand } from './messages.ts';
import { TimeSlicedQueue } from './time-sliced-queue.ts';

const SLICE_MS = 1;

export interface CommandRunnerOptions {
  apply(command: WorkerCommand): void;
  /** Returns milliseconds of a clock that never goes back. */
  readonly now: () => number;
}

export class CommandRunner {
  readonly #apply: (command: WorkerCommand) => void;
  readonly #queue: TimeSlicedQueue;
  readonly #lazyRoutes = new LazyRoutes();

  constructor({ apply, now }: CommandRunnerOptions) {
    this.#apply = apply;
    this.#queue = new TimeSlicedQueue({ sliceMs: SLICE_MS, now });
  }

  /** Whether commands wait for a later turn of the event loop. */
  get isBehind(): boolean {
    return this.#queue.isBusy;
  }

  /** Adds a command. Applies the command now if no other command waits and this turn's slice has time left. */
  add(command: SentCommand): void {
    this.#queue.add(this.#stepsOf(command));
  }

  /** If the Service of this route is not decoded yet, decodes and applies it and returns true. Otherwise returns false. */
  loadLazyRoute(route: RouteKey): boolean {
    const command = this.#lazyRoutes.takeForRoute(route);
    if (command !== undefined) this.#apply(command);
    return command !== undefined;
  }

  *#stepsOf(command: SentCommand): Iterable<void> {
    if (command.kind !== 'packed-table') {
      this.#applyWithLazyRoutes(command);
      return;
    }
    for (let index = 0; index < command.ends.length; index += 1) {
      const service = command.lazyServices?.[index];
      if (service) this.#lazyRoutes.add(service, command, index);
      else this.#applyWithLazyRoutes(unpackBatch(command, index));
      yield;
    }
  }

  #applyWithLazyRoutes(command: WorkerCommand): void {
    if (command.kind === 'table') for (const earlier of this.#lazyRoutes.takeForCommand(command)) this.#apply(earlier);
    this.#apply(command);
  }
}

interface LazyEntry {
  readonly service: LazyService;
  readonly packed: PackedTableCommand;
  readonly index: number;
}

/**
 * Services that are not decoded yet. The worker keeps only their positions in the packed table, because most of
 * thousands of Services have no connection. Invariant: decoding Services late leads to the same state as decoding each
 * Service at once.
 */
class LazyRoutes {
  readonly #byService = new Map<string, LazyEntry>();
  readonly #byRoute = new Map<RouteKey, LazyEntry>();

  add(service: LazyService, packed: PackedTableCommand, index: number): void {
    const entry = { service, packed, index };
    const [uid, ...routes] = service;
    this.#byService.set(uid, entry);
    for (const key of routes) this.#byRoute.set(key, entry);
  }

  /** Returns the command that adds the Service of this route, or undefined if the Service is decoded already. */
  takeForRoute(route: RouteKey): TableCommand | undefined {
    return this.#take(this.#byRoute.get(route));
  }

  /**
   * Yields the commands that must be applied before this command, because they add the Services that this command
   * changes.
   */
  *takeForCommand({ changes, slots, limits = [] }: TableCommand): Iterable<TableCommand> {
    if (this.#byService.size === 0) return;
    for (const entry of this.#entriesChangedBy(changes, [...slots, ...limits])) {
      const command = this.#take(entry);
      if (command !== undefined) yield command;
    }
  }

  *#entriesChangedBy(
    changes: readonly Change[],
    assigned: readonly (readonly [uid: string, ...unknown[]])[],
  ): Iterable<LazyEntry | undefined> {
    for (const change of changes) {
      yield this.#byService.get(serviceOfChange(change) ?? '');
      // Yields the Service that owns the listener which this change deletes or gives to another Service.
      yield this.#byRoute.get(listenerKeyOfEntryId(entryIdOf(change)) ?? '');
    }
    for (const [uid] of assigned) yield this.#byService.get(uid);
  }

  #take(entry: LazyEntry | undefined): TableCommand | undefined {
    if (entry === undefined) return undefined;
    const { service, packed, index } = entry;
    const [uid, ...routes] = service;
    this.#byService.delete(uid);
    for (const key of routes) this.#byRoute.delete(key);
    return unpackBatch(packed, index);
  }
}

function unpackBatch({ bytes, ends }: PackedTableCommand, index: number): TableCommand {
  const text = Buffer.from(bytes.buffer, bytes.byteOffset).toString('utf8', ends[index - 1] ?? 0, ends[index]);
  return JSON.parse(text) as TableCommand;
}
