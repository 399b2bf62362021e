import { type FSWatcher, statSync, watch } from 'node:fs';
import { basename, dirname } from 'node:path';
import type { Clock, Timer } from '@weir/runtime';

/**
 * Reports file events in a changing set of directories. A kernel watch belongs to an inode, so a directory that was replaced under
 * the same name is watched again. Directories that cannot be watched (network file systems, exhausted inotify watches) are skipped,
 * because `DirectorySource` also scans at intervals.
 */
export class DirectoryWatcher {
  readonly #onEvent: () => void;
  readonly #watchers = new Map<string, { readonly inode: string; readonly watcher: FSWatcher }>();

  constructor(onEvent: () => void) {
    this.#onEvent = onEvent;
  }

  /**
   * Replaces the set of watched directories. Reports all events in `directories`. In the parent of each path in `paths`, reports only
   * events with the name of that path; the parent is watched because editors replace a file by renaming. Returns true if a watch was
   * added, because earlier events may have been missed.
   */
  set(directories: readonly string[], paths: readonly string[]): boolean {
    const wanted = new Map<string, Set<string> | null>();
    for (const path of paths) {
      const parent = dirname(path);
      wanted.set(parent, (wanted.get(parent) ?? new Set()).add(basename(path)));
    }
    for (const directory of directories) wanted.set(directory, null);
    for (const [path, { watcher }] of this.#watchers) {
      if (wanted.has(path)) continue;
      watcher.close();
      this.#watchers.delete(path);
    }
    let added = false;
    for (const [path, names] of wanted) added = this.#add(path, names) || added;
    return added;
  }

  close(): void {
    for (const { watcher } of this.#watchers.values()) watcher.close();
    this.#watchers.clear();
  }

  #add(path: string, names: ReadonlySet<string> | null): boolean {
    const inode = inodeOf(path);
    const present = this.#watchers.get(path);
    if (inode === undefined || present?.inode === inode) return false;
    present?.watcher.close();
    this.#watchers.delete(path);
    try {
      const watcher = watch(path, (_event, name) => {
        if (names === null || name === null || names.has(name)) this.#onEvent();
      });
      watcher.on('error', () => this.#drop(path, watcher));
      this.#watchers.set(path, { inode, watcher });
      return true;
    } catch {
      return false;
    }
  }

  #drop(path: string, watcher: FSWatcher): void {
    watcher.close();
    if (this.#watchers.get(path)?.watcher === watcher) this.#watchers.delete(path);
    this.#onEvent();
  }
}

/** Returns device and inode of a path. Undefined if the path does not exist, may not be entered, or is a circular link. */
function inodeOf(path: string): string | undefined {
  try {
    const { dev, ino } = statSync(path);
    return `${dev}:${ino}`;
  } catch {
    return undefined;
  }
}

/**
 * How long `Debounce` waits for a further event, but at most `MAX_DEBOUNCE_MS` after the first event. Editors write a file in several
 * steps.
 */
const DEBOUNCE_MS = 15;
const MAX_DEBOUNCE_MS = 45;

/** Calls `callback` once after a burst of events. */
export class Debounce {
  readonly #clock: Clock;
  readonly #callback: () => void;
  #timer: Timer | undefined;
  #firstAt = 0;

  constructor(clock: Clock, callback: () => void) {
    this.#clock = clock;
    this.#callback = callback;
  }

  trigger(): void {
    const now = this.#clock.monotonic();
    if (this.#timer === undefined) this.#firstAt = now;
    this.#timer?.cancel();
    const ms = Math.min(DEBOUNCE_MS, Math.max(0, this.#firstAt + MAX_DEBOUNCE_MS - now));
    this.#timer = this.#clock.setTimeout(() => {
      this.#timer = undefined;
      this.#callback();
    }, ms);
  }

  close(): void {
    this.#timer?.cancel();
  }
}
