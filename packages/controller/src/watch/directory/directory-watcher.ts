import { type FSWatcher, statSync, watch } from 'node:fs';
import { basename, dirname } from 'node:path';
import type { Clock, Timer } from '@weir/runtime';

/**
 * Tells that something happened in one of a changing set of directories. Each is watched by itself: what is watched is an inode, so a
 * directory that was replaced by another of its name is watched anew. What cannot be watched (a network file system, no more
 * inotify watches) is left to whoever looks again from time to time.
 */
export class DirectoryWatcher {
  readonly #onEvent: () => void;
  readonly #watchers = new Map<string, { readonly inode: string; readonly watcher: FSWatcher }>();

  constructor(onEvent: () => void) {
    this.#onEvent = onEvent;
  }

  /**
   * Watches these, and no others: `directories` for anything, and of each of `paths` the directory above it for its name, since an
   * editor replaces a file by renaming. True when one was added: what happened before that may have been missed.
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

/** Undefined when there is nothing to watch now: it is gone, may not be entered, or is a link that leads in circles. */
function inodeOf(path: string): string | undefined {
  try {
    const { dev, ino } = statSync(path);
    return `${dev}:${ino}`;
  } catch {
    return undefined;
  }
}

/** An editor writes in several steps: wait for this much quiet after each, but not for ever. */
const DEBOUNCE_MS = 15;
const MAX_DEBOUNCE_MS = 45;

/** Calls back once after a burst of events. */
export class Debounce {
  readonly #clock: Clock;
  readonly #callback: () => void;
  #timer: Timer | undefined;
  #firstAt = 0;

  constructor(clock: Clock, then: () => void) {
    this.#clock = clock;
    this.#callback = then;
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
