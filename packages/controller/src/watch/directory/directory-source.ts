import { stat } from 'node:fs/promises';
import type { NodeObject, Problem, Suspension, SuspensionOrigin } from '@weir/model';
import { type Clock, Sealer, type Secret, type Timer, UsageError } from '@weir/runtime';
import { objectKey, SortedObjects } from '../../snapshot/sorted-objects.ts';
import type { Source, SourceSnapshot } from '../source.ts';
import { SnapshotCache } from '../source.ts';
import { Debounce, DirectoryWatcher } from './directory-watcher.ts';
import { type CommandLineNode, fleetNodes, withImpliedNamespaces } from './implied-objects.ts';
import { ManifestFiles, type ManifestScan, unreadableReason } from './manifest-files.ts';
import { type ManifestKind, manifestParsersFor, type ObjectsByKind } from './manifest-kinds.ts';
import { MergedFiles } from './merged-files.ts';

export interface DirectoryOptions {
  /** Files and directories, as given to `-f`. The path `-` stands for `stdin`. */
  readonly paths: readonly string[];
  /** The text of standard input, if `paths` contains `-`. Read once, not watched. */
  readonly stdin?: string | undefined;
  readonly clock: Clock;
  /** The nodes given with `--node NAME=ADDRESS`. Default: one node `local` on 127.0.0.1. */
  readonly nodes?: readonly CommandLineNode[];
  /** If false, the files are read only once, for a dry run. */
  readonly watched?: boolean;
  /** Seals private keys. All proxies need the same secret. If undefined, Secrets are not read. */
  readonly fleetSecret?: Secret | undefined;
}

/**
 * How often the files are scanned, even without inotify events. Network file systems send no such events. Once inotify watches are
 * exhausted, the kernel sends no events for further directories.
 */
const RESCAN_INTERVAL_MS = 2_000;

/** Reads all manifests once, and watches them unless `watched` is false. Throws `UsageError` if a path does not exist. */
export async function openDirectorySource(options: DirectoryOptions): Promise<DirectorySource> {
  if (options.paths.length === 0) throw new UsageError('no manifests given; name a file or directory with -f');
  for (const path of filePathsOf(options)) {
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

const STDIN_PATH = '-';

function filePathsOf({ paths }: Pick<DirectoryOptions, 'paths'>): readonly string[] {
  return paths.filter((path) => path !== STDIN_PATH);
}

export class DirectorySource implements Source {
  readonly kind = 'directory';
  readonly #clock: Clock;
  readonly #commandLineNodes: readonly CommandLineNode[];
  readonly #paths: readonly string[];
  readonly #files: ManifestFiles;
  readonly #areSecretsRead: boolean;
  readonly #watcher: DirectoryWatcher | undefined;
  readonly #debounce: Debounce;
  readonly #objects: { readonly [K in ManifestKind]: SortedObjects<ObjectsByKind[K]> } = {
    Namespace: new SortedObjects(),
    Node: new SortedObjects(),
    Service: new SortedObjects(),
    EndpointSlice: new SortedObjects(),
    TenantPolicy: new SortedObjects(),
    Suspension: new SortedObjects(),
    Secret: new SortedObjects(),
    ConfigMap: new SortedObjects(),
  };
  readonly #merged = new MergedFiles();
  readonly #snapshots = new SnapshotCache(() => this.#buildSnapshot());
  #problems: readonly Problem[] = [];
  #cachedFleetNodes: ({ readonly manifests: readonly NodeObject[] } & ReturnType<typeof fleetNodes>) | undefined;
  #scanning: Promise<void> | undefined;
  #isRescanNeeded = false;
  /** The time of the first file event since the last scan. */
  #firstEventAt: number | undefined;
  #nextScan: Timer | undefined;
  #isClosed = false;

  constructor(options: DirectoryOptions) {
    this.#clock = options.clock;
    this.#commandLineNodes = options.nodes ?? [];
    const { clock, fleetSecret, stdin } = options;
    const paths = filePathsOf(options);
    this.#paths = paths;
    this.#areSecretsRead = fleetSecret !== undefined;
    const parsers = manifestParsersFor(fleetSecret && new Sealer(fleetSecret));
    this.#files = new ManifestFiles({ paths, clock, parsers, stdin });
    this.#debounce = new Debounce(options.clock, () => void this.scan());
    this.#watcher = options.watched === false ? undefined : new DirectoryWatcher(() => this.#onFileEvent());
  }

  async synced(): Promise<void> {}

  snapshot(): SourceSnapshot {
    return this.#snapshots.get();
  }

  /** Returns how many well-formed objects were found of each kind that Weir does not read. */
  ignoredKinds(): ReadonlyMap<string, number> {
    return this.#merged.ignored();
  }

  onChange(listener: (changedAt?: number) => void): () => void {
    return this.#snapshots.onChange(listener);
  }

  originOf({ uid }: { readonly uid: string }): SuspensionOrigin {
    for (const { kind, object, path } of this.#merged.objects.values()) {
      if (kind === 'Suspension' && object.uid === uid) return { kind: 'file', path };
    }
    return { kind: 'file', path: this.#paths.join(', ') };
  }

  /**
   * Whether the Suspension was deleted from the files. False while any file has a mistake, because after a restart the mistake may be why
   * the Suspension is missing.
   */
  async isDeleted({ uid, origin }: Suspension): Promise<boolean> {
    if (origin.kind !== 'file' || this.snapshot().suspensions.some((each) => each.uid === uid)) return false;
    return !this.#problems.some((each) => each.severity === 'error' && each.code !== 'DuplicateObject');
  }

  /** Scans the files now. A call during a scan starts another scan when the running scan ends, because scans must not overlap. */
  scan(): Promise<void> {
    if (this.#scanning !== undefined) {
      this.#isRescanNeeded = true;
      return this.#scanning;
    }
    this.#scanning = this.#scanUntilStable().finally(() => {
      this.#scanning = undefined;
    });
    return this.#scanning;
  }

  async close(): Promise<void> {
    this.#isClosed = true;
    this.#nextScan?.cancel();
    this.#watcher?.close();
    this.#debounce.close();
    this.#snapshots.close();
    await this.#scanning;
  }

  #onFileEvent(): void {
    this.#firstEventAt ??= this.#clock.now();
    this.#debounce.trigger();
  }

  async #scanUntilStable(): Promise<void> {
    let rescanInMs: number | null;
    do {
      this.#isRescanNeeded = false;
      const changedAt = this.#firstEventAt ?? this.#clock.now();
      this.#firstEventAt = undefined;
      const scan = await this.#files.scan();
      if (this.#isClosed) return;
      rescanInMs = scan.rescanInMs;
      if (this.#watcher?.set(scan.directories, this.#paths)) this.#isRescanNeeded = true;
      this.#applyScan(scan, changedAt);
    } while (this.#isRescanNeeded);
    if (this.#watcher === undefined) return;
    this.#nextScan?.cancel();
    this.#nextScan = this.#clock.setTimeout(() => void this.scan(), rescanInMs ?? RESCAN_INTERVAL_MS);
  }

  #applyScan({ contents, problems }: ManifestScan, changedAt: number): void {
    const previousProblems = JSON.stringify(this.#problems);
    let isChanged = false;
    for (const { before, after } of this.#merged.update(contents)) {
      if (after !== undefined) isChanged = this.#objectsOf(after.kind).set(after.object) || isChanged;
      else if (before !== undefined)
        isChanged = this.#objectsOf(before.kind).delete(objectKey(before.object)) || isChanged;
    }
    this.#problems = [...problems, ...this.#merged.problems()];
    if (isChanged || previousProblems !== JSON.stringify(this.#problems)) this.#snapshots.invalidate(changedAt);
  }

  #objectsOf(kind: ManifestKind): SortedObjects<ObjectsByKind[ManifestKind]> {
    return this.#objects[kind] as SortedObjects<ObjectsByKind[ManifestKind]>;
  }

  /** Returns the nodes of the fleet and their problems. The result is the same object until a Node changes. */
  #fleetNodes(): ReturnType<typeof fleetNodes> {
    const manifests = this.#objects.Node.list();
    if (this.#cachedFleetNodes?.manifests !== manifests)
      this.#cachedFleetNodes = { manifests, ...fleetNodes(manifests, this.#commandLineNodes) };
    return this.#cachedFleetNodes;
  }

  #buildSnapshot(): SourceSnapshot {
    const { nodes, problems } = this.#fleetNodes();
    const services = this.#objects.Service.list();
    const serviceNamespaces = services.map((service) => service.namespace);
    return Object.freeze({
      namespaces: Object.freeze(withImpliedNamespaces(this.#objects.Namespace.list(), serviceNamespaces)),
      nodes,
      services,
      slices: this.#objects.EndpointSlice.list(),
      pods: Object.freeze([]),
      policies: this.#objects.TenantPolicy.list(),
      suspensions: this.#objects.Suspension.list(),
      ...(this.#areSecretsRead && { secrets: this.#objects.Secret.list() }),
      configMaps: this.#objects.ConfigMap.list(),
      problems: Object.freeze([...this.#problems, ...problems]),
    });
  }
}
