import { stat } from 'node:fs/promises';
import type { NodeObject, Problem, Suspension, SuspensionOrigin } from '@weir/model';
import { type Clock, Sealer, type Secret, type Timer, UsageError } from '@weir/runtime';
import { objectKey, SortedObjects } from '../../snapshot/sorted-objects.ts';
import type { Source, SourceSnapshot } from '../source.ts';
import { Debounce, DirectoryWatcher } from './directory-watcher.ts';
import { type MergedContents, mergeContents } from './file-contents.ts';
import { type CommandLineNode, fleetNodes, withImpliedNamespaces } from './implied-objects.ts';
import { ManifestFiles, unreadableReason } from './manifest-files.ts';
import { type ManifestKind, manifestParsersFor, type ObjectsByKind } from './manifest-kinds.ts';

export interface DirectoryOptions {
  /** Files and directories, as given to `-f`. */
  readonly paths: readonly string[];
  readonly clock: Clock;
  /** `--node NAME=ADDRESS`; none: one node `local` on 127.0.0.1. */
  readonly nodes?: readonly CommandLineNode[];
  /** False reads once, for a dry run. */
  readonly watched?: boolean;
  /** What private keys are sealed with, the same in all proxies; absent: Secrets are not read. */
  readonly fleetSecret?: Secret | undefined;
}

/** For what the kernel does not tell: network file systems, exhausted inotify watches. */
const RESCAN_INTERVAL_MS = 2_000;

interface ScanResult {
  readonly merged: MergedContents;
  readonly problems: readonly Problem[];
  readonly changedAt: number;
}

/** Reads everything once and starts watching. Throws `UsageError` when a path does not exist. */
export async function openDirectorySource(options: DirectoryOptions): Promise<DirectorySource> {
  if (options.paths.length === 0) throw new UsageError('no manifests given; name a file or directory with -f');
  for (const path of options.paths) {
    const error = await stat(path).then(
      () => undefined,
      (reason: NodeJS.ErrnoException) => reason,
    );
    if (error?.code === 'ENOENT' || error?.code === 'ENOTDIR') {
      throw new UsageError(`-f ${path}: ${unreadableReason(error)}; name a file or directory of manifests`, {
        cause: error,
      });
    }
  }
  const source = new DirectorySource(options);
  await source.scan();
  return source;
}

export class DirectorySource implements Source {
  readonly kind = 'directory';
  readonly #clock: Clock;
  readonly #commandLineNodes: readonly CommandLineNode[];
  readonly #paths: readonly string[];
  readonly #files: ManifestFiles;
  readonly #readsSecrets: boolean;
  readonly #watcher: DirectoryWatcher | undefined;
  readonly #debounce: Debounce;
  readonly #listeners = new Set<(changedAt?: number) => void>();
  readonly #objects: { readonly [K in ManifestKind]: SortedObjects<ObjectsByKind[K]> } = {
    Namespace: new SortedObjects(),
    Node: new SortedObjects(),
    Service: new SortedObjects(),
    EndpointSlice: new SortedObjects(),
    TenantPolicy: new SortedObjects(),
    Suspension: new SortedObjects(),
    Secret: new SortedObjects(),
  };
  #merged: MergedContents = { objects: new Map(), problems: [], ignored: new Map() };
  #snapshot: SourceSnapshot | undefined;
  #problems: readonly Problem[] = [];
  #cachedFleetNodes: ({ readonly of: readonly NodeObject[] } & ReturnType<typeof fleetNodes>) | undefined;
  #scanning: Promise<void> | undefined;
  #scanAgain = false;
  /** When the kernel first told of something that was not looked at yet. */
  #firstEventAt: number | undefined;
  #nextScan: Timer | undefined;
  #closed = false;

  constructor(options: DirectoryOptions) {
    this.#clock = options.clock;
    this.#commandLineNodes = options.nodes ?? [];
    this.#paths = options.paths;
    const { paths, clock, fleetSecret } = options;
    this.#readsSecrets = fleetSecret !== undefined;
    const projections = manifestParsersFor(fleetSecret && new Sealer(fleetSecret));
    this.#files = new ManifestFiles({ paths, clock, projections });
    this.#debounce = new Debounce(options.clock, () => void this.scan());
    this.#watcher = options.watched === false ? undefined : new DirectoryWatcher(() => this.#onFileEvent());
  }

  async synced(): Promise<void> {}

  snapshot(): SourceSnapshot {
    this.#snapshot ??= this.#makeSnapshot();
    return this.#snapshot;
  }

  /** Well-formed objects of kinds that Weir does not read: how many of each. */
  ignoredKinds(): ReadonlyMap<string, number> {
    return this.#merged.ignored;
  }

  onChange(listener: (changedAt?: number) => void): () => void {
    this.#listeners.add(listener);
    return () => void this.#listeners.delete(listener);
  }

  originOf({ uid }: { readonly uid: string }): SuspensionOrigin {
    for (const placed of this.#merged.objects.values()) {
      if (placed.kind === 'Suspension' && placed.object.uid === uid) return { kind: 'file', path: placed.path };
    }
    return { kind: 'file', path: this.#paths.join(', ') };
  }

  /** After a restart a file with a mistake in it may hide the Suspension: then nothing is known. */
  async isDeleted({ uid, origin }: Suspension): Promise<boolean> {
    if (origin.kind !== 'file' || this.snapshot().suspensions.some((each) => each.uid === uid)) return false;
    return !this.#problems.some((each) => each.severity === 'error' && each.code !== 'DuplicateObject');
  }

  /** Looks at the files now. Looks never overlap; asked meanwhile, it looks once more after. */
  scan(): Promise<void> {
    if (this.#scanning !== undefined) {
      this.#scanAgain = true;
      return this.#scanning;
    }
    this.#scanning = this.#scanUntilStable().finally(() => {
      this.#scanning = undefined;
    });
    return this.#scanning;
  }

  async close(): Promise<void> {
    this.#closed = true;
    this.#nextScan?.cancel();
    this.#watcher?.close();
    this.#debounce.close();
    this.#listeners.clear();
    await this.#scanning;
  }

  #onFileEvent(): void {
    this.#firstEventAt ??= this.#clock.now();
    this.#debounce.trigger();
  }

  async #scanUntilStable(): Promise<void> {
    let againInMs: number | null;
    do {
      this.#scanAgain = false;
      const changedAt = this.#firstEventAt ?? this.#clock.now();
      this.#firstEventAt = undefined;
      const look = await this.#files.scan();
      if (this.#closed) return;
      againInMs = look.rescanInMs;
      if (this.#watcher?.set(look.directories, this.#paths)) this.#scanAgain = true;
      this.#applyScan({ merged: mergeContents(look.contents, this.#merged), problems: look.problems, changedAt });
    } while (this.#scanAgain);
    if (this.#watcher === undefined) return;
    this.#nextScan?.cancel();
    this.#nextScan = this.#clock.setTimeout(() => void this.scan(), againInMs ?? RESCAN_INTERVAL_MS);
  }

  #applyScan({ merged, problems, changedAt }: ScanResult): void {
    const before = JSON.stringify(this.#problems);
    this.#problems = [...problems, ...merged.problems];
    this.#merged = merged;
    const isChanged = this.#putObjects(merged);
    if (!isChanged && before === JSON.stringify(this.#problems)) return;
    this.#snapshot = undefined;
    for (const listener of this.#listeners) listener(changedAt);
  }

  #putObjects(merged: MergedContents): boolean {
    let isChanged = false;
    const present = new Map<ManifestKind, Set<string>>();
    for (const placed of merged.objects.values()) {
      const objects = this.#objects[placed.kind] as SortedObjects<ObjectsByKind[ManifestKind]>;
      isChanged = objects.set(placed.object) || isChanged;
      present.set(placed.kind, (present.get(placed.kind) ?? new Set()).add(objectKey(placed.object)));
    }
    for (const [kind, objects] of Object.entries(this.#objects)) {
      for (const key of [...objects.keys()]) {
        if (!present.get(kind as ManifestKind)?.has(key)) isChanged = objects.delete(key) || isChanged;
      }
    }
    return isChanged;
  }

  /** The same list until a Node changes. */
  #fleetNodes(): ReturnType<typeof fleetNodes> {
    const manifests = this.#objects.Node.list();
    if (this.#cachedFleetNodes?.of !== manifests)
      this.#cachedFleetNodes = { of: manifests, ...fleetNodes(manifests, this.#commandLineNodes) };
    return this.#cachedFleetNodes;
  }

  #makeSnapshot(): SourceSnapshot {
    const { nodes, problems } = this.#fleetNodes();
    const services = this.#objects.Service.list();
    const mentioned = services.map((service) => service.namespace);
    return Object.freeze({
      namespaces: Object.freeze(withImpliedNamespaces(this.#objects.Namespace.list(), mentioned)),
      nodes,
      services,
      slices: this.#objects.EndpointSlice.list(),
      pods: Object.freeze([]),
      policies: this.#objects.TenantPolicy.list(),
      suspensions: this.#objects.Suspension.list(),
      ...(this.#readsSecrets && { secrets: this.#objects.Secret.list() }),
      problems: Object.freeze([...this.#problems, ...problems]),
    });
  }
}
