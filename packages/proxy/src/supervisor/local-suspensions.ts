// The suspensions that an administrator made on this node with `weir suspend --local`. They need neither the
// controller, nor the API server, nor Redis. They hold only on this node. A file in the state directory keeps them over
// restarts.

import { dirname } from 'node:path';
import { isInForce, type Suspension } from '@weir/model/data-plane';
import {
  type Clock,
  ensureDirectory,
  errorMessage,
  type Logger,
  readFileIfPresent,
  type Timer,
  writeFileAtomic,
} from '@weir/runtime';
import { isSuspension } from '@weir/store';
import { parseJsonObject } from './json-object.ts';

/** Every heartbeat contains the local suspensions, so their number is limited. */
export const MAX_LOCAL_SUSPENSIONS = 20;

export interface LocalSuspensionRequest {
  readonly target: Suspension['target'];
  readonly message: string;
  /** Milliseconds since the epoch; null if the suspension holds until it is resumed. */
  readonly until: number | null;
  /**
   * The user name that the command sends. Not verified, because the socket's mode admits only the proxy's user and
   * root.
   */
  readonly madeBy: string | undefined;
}

export interface LocalSuspensionsOptions {
  readonly path: string;
  readonly node: string;
  readonly clock: Clock;
  readonly log: Logger;
  /** Called with the suspensions in force after each change. */
  readonly onChange: (inForce: readonly Suspension[]) => void;
}

export class LocalSuspensions {
  readonly #options: LocalSuspensionsOptions;
  #suspensions: readonly Suspension[] = [];
  /** The text of the file as this process last read or wrote it. */
  #text: string | undefined;
  /** Whether the last write failed, so that the file is older than `#suspensions`. */
  #isUnsaved = false;
  /** Whether the last read has failed. Only the first failure is logged. */
  #isUnreadable = false;
  #lastTask: Promise<unknown> = Promise.resolve();
  #expiryTimer: Timer | undefined;

  constructor(options: LocalSuspensionsOptions) {
    this.#options = options;
  }

  get inForce(): readonly Suspension[] {
    return this.#suspensions;
  }

  /**
   * Reads the file if another process has changed it, because two proxies run on one node during an upgrade. If this
   * process has failed to write the file, writes the file again instead. To be called at the start and then once a
   * second.
   */
  sync(): Promise<void> {
    return this.#inTurn(() => (this.#isUnsaved ? this.#save() : this.#read()));
  }

  /**
   * Suspends the target. Replaces an earlier local suspension of the same target. Returns undefined if there are
   * already `MAX_LOCAL_SUSPENSIONS`. Resolves after the file was written, or after the write failed (see `isSaved`).
   */
  suspend(request: LocalSuspensionRequest): Promise<Suspension | undefined> {
    return this.#inTurn(async () => {
      await this.#readUnlessUnsaved();
      const { node, clock, log } = this.#options;
      const name = nameFor(node, request.target);
      const others = this.#suspensions.filter((each) => each.name !== name);
      if (others.length >= MAX_LOCAL_SUSPENSIONS) return undefined;
      const { madeBy, ...fields } = request;
      const suspension: Suspension = {
        uid: name,
        name,
        ...fields,
        reason: 'SuspendedByOperator',
        origin: { kind: 'local', node },
        createdAt: clock.now(),
        ...(madeBy === undefined ? {} : { madeBy }),
      };
      this.#apply([...others, suspension]);
      log.warn({ suspension: name, target: request.target, by: madeBy }, 'suspended on this node only');
      await this.#save();
      return suspension;
    });
  }

  /** Ends the local suspension of exactly this target. Returns undefined if there is none. */
  resume(target: Suspension['target'], by: string | undefined): Promise<Suspension | undefined> {
    return this.#inTurn(async () => {
      await this.#readUnlessUnsaved();
      const name = nameFor(this.#options.node, target);
      const found = this.#suspensions.find((each) => each.name === name);
      if (found === undefined) return undefined;
      this.#apply(this.#suspensions.filter((each) => each !== found));
      this.#options.log.warn({ suspension: name, target, by }, 'resumed on this node');
      await this.#save();
      return found;
    });
  }

  /** Whether the file has all changes, so that the suspensions survive a restart. */
  get isSaved(): boolean {
    return !this.#isUnsaved;
  }

  async close(): Promise<void> {
    this.#expiryTimer?.cancel();
    await this.#lastTask;
  }

  async #readUnlessUnsaved(): Promise<void> {
    if (!this.#isUnsaved) await this.#read();
  }

  /** Keeps the known suspensions if the file cannot be read or decoded, because they must not be lifted by accident. */
  async #read(): Promise<void> {
    const { path, log } = this.#options;
    const text = await this.#readText();
    if (text === this.#text) return;
    this.#text = text;
    const suspensions = text === undefined ? [] : parseFile(text);
    if (suspensions === undefined) log.error({ path }, 'failed to decode the local suspensions; keeping the last ones');
    else this.#apply(suspensions);
  }

  /** Returns the last known text if the file cannot be read. */
  async #readText(): Promise<string | undefined> {
    const { path, log } = this.#options;
    try {
      const text = await readFileIfPresent(path);
      this.#isUnreadable = false;
      return text;
    } catch (error) {
      if (!this.#isUnreadable)
        log.error(
          { path, reason: errorMessage(error) },
          'failed to read the local suspensions; keeping the last ones and retrying',
        );
      this.#isUnreadable = true;
      return this.#text;
    }
  }

  async #save(): Promise<void> {
    const { path, log } = this.#options;
    const text = JSON.stringify({ version: 1, suspensions: this.#suspensions });
    try {
      await ensureDirectory(dirname(path));
      await writeFileAtomic(path, text);
      this.#text = text;
      this.#isUnsaved = false;
    } catch (error) {
      if (!this.#isUnsaved)
        log.error(
          { path, reason: errorMessage(error) },
          'failed to write the local suspensions; they are in force, but a restart would lift them; retrying',
        );
      this.#isUnsaved = true;
    }
  }

  #apply(suspensions: readonly Suspension[]): void {
    const { clock, onChange } = this.#options;
    const now = clock.now();
    this.#suspensions = suspensions.filter((each) => isInForce(each, now)).slice(0, MAX_LOCAL_SUSPENSIONS);
    this.#expiryTimer?.cancel();
    const end = Math.min(...this.#suspensions.map(({ until }) => until ?? Number.POSITIVE_INFINITY));
    this.#expiryTimer = Number.isFinite(end)
      ? clock.setTimeout(() => this.#apply(this.#suspensions), end - now)
      : undefined;
    onChange(this.#suspensions);
  }

  /** Runs the tasks one after another, because each task reads the file and then writes it. */
  #inTurn<T>(task: () => Promise<T>): Promise<T> {
    const done = this.#lastTask.then(task);
    this.#lastTask = done.catch(() => undefined);
    return done;
  }
}

/** The node is part of the name, because the lists of the console contain the local suspensions of all nodes. */
function nameFor(node: string, target: Suspension['target']): string {
  switch (target.kind) {
    case 'tenant':
      return `local.${node}.tenant.${target.tenant}`;
    case 'namespace':
      return `local.${node}.namespace.${target.namespace}`;
    case 'service':
      return `local.${node}.service.${target.namespace}.${target.service}`;
  }
}

function parseFile(text: string): readonly Suspension[] | undefined {
  const content = parseJsonObject(text);
  if (content?.version !== 1 || !Array.isArray(content.suspensions)) return undefined;
  return content.suspensions.every(isSuspension) ? content.suspensions : undefined;
}
