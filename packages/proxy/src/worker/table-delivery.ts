// How a worker applies the commands of the supervisor (supervisor/table-delivery.ts is the other side and explains the
// whole). Commands are applied in order, for at most 1 ms in one turn of the event loop: other commands wait behind a
// large table, but connections never do. A Service of a packed table stays encoded until its first client connects or a
// later command changes it.
import { type Change, entryIdOf, listenerKeyOfEntryId, type RouteKey, serviceOfChange } from '@weir/model/data-plane';
import type { LazyService, PackedTableCommand, SentCommand, TableCommand, WorkerCommand } from './messages.ts';
import { TimeSlicedQueue } from './time-sliced-queue.ts';

const SLICE_MS = 1;

export interface CommandRunnerOptions {
  apply(command: WorkerCommand): void;
  /** Milliseconds of a clock that never goes back. */
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

  /** Applies the command now if no command waits and this turn's slice has time left. */
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
 * Services that are not decoded yet: most of thousands have no connection, so a worker keeps only their position in the packed table.
 * Invariant: a worker that decodes them late is in the same state as a worker that decoded each of them at once.
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

  /** Returns the command that adds the Service of this route. */
  takeForRoute(route: RouteKey): TableCommand | undefined {
    return this.#take(this.#byRoute.get(route));
  }

  /** Returns the commands to be applied before this command: they add the Services that this command changes. */
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
      // The owner of a listener that the change deletes or gives to another Service.
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
