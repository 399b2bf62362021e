import { type ClientHttp2Session, type ClientHttp2Stream, connect, constants } from 'node:http2';
import { setTimeout as delay } from 'node:timers/promises';
import { spawnProcess } from '@weir/testkit';
import { programPath } from '@weir/tools';

// A loop that runs one kubectl command again and again, also after a failure.
export interface KubectlLoop {
  /** The number of successful commands. */
  readonly succeeded: number;
  /** The failed commands. `consecutive` is the number of failures in a row up to and including this command. */
  readonly failures: readonly { readonly consecutive: number; readonly output: string }[];
  close(): Promise<void>;
}

export function startKubectlLoop(kubeconfig: string, args: readonly string[]): KubectlLoop {
  const failures: { consecutive: number; output: string }[] = [];
  let succeeded = 0;
  let consecutive = 0;
  let isOver = false;
  const loop = async (): Promise<void> => {
    while (!isOver) {
      const kubectl = await spawnProcess({
        command: programPath('kubectl'),
        args: [...args, '--request-timeout=10s'],
        env: { ...process.env, KUBECONFIG: kubeconfig },
        mayExit: true,
      });
      const { code } = await kubectl.exited;
      consecutive = code === 0 ? 0 : consecutive + 1;
      if (code === 0) succeeded += 1;
      else failures.push({ consecutive, output: kubectl.output() });
    }
  };
  const looping = loop();
  return {
    get succeeded() {
      return succeeded;
    },
    failures,
    async close() {
      isOver = true;
      await looping;
    },
  };
}

// Imitates a kubelet: uses one HTTP/2 connection, opens a new watch whenever the watch ends, and sends a ping after 30 s of silence.

export interface KubeletWatchOptions {
  readonly server: string;
  readonly ca: string;
  readonly token: string;
  readonly namespace: string;
}

export interface KubeletWatch {
  /** The names of the ConfigMaps in received events. */
  readonly seenNames: ReadonlySet<string>;
  /** The number of watches that were opened so far. */
  readonly openedWatches: number;
  /** The failed attempts to open a watch. `consecutive` is the number of failures in a row up to and including this attempt. */
  readonly failures: readonly { readonly consecutive: number; readonly error: string }[];
  close(): Promise<void>;
}

/** The idle timeout and the ping timeout of client-go. */
const IDLE_TIMEOUT_MS = 30_000;
const PING_TIMEOUT_MS = 15_000;
const RETRY_DELAY_MS = 800;

export function startKubeletWatch(options: KubeletWatchOptions): KubeletWatch {
  const seenNames = new Set<string>();
  const failures: { consecutive: number; error: string }[] = [];
  let opened = 0;
  let consecutive = 0;
  let isOver = false;
  let session: ClientHttp2Session | undefined;
  const loop = async (): Promise<void> => {
    while (!isOver) {
      try {
        if (session === undefined || session.closed || session.destroyed) session = openSession(options);
        await watchOnce(session, options, {
          onOpen() {
            opened += 1;
            consecutive = 0;
          },
          onName: (name) => void seenNames.add(name),
        });
      } catch (error) {
        if (isOver) return;
        consecutive += 1;
        failures.push({ consecutive, error: String(error) });
        await delay(RETRY_DELAY_MS);
      }
    }
  };
  const looping = loop();
  return {
    seenNames,
    get openedWatches() {
      return opened;
    },
    failures,
    async close() {
      isOver = true;
      session?.destroy();
      await looping;
    },
  };
}

function openSession({ server, ca }: KubeletWatchOptions): ClientHttp2Session {
  const session = connect(server, { ca });
  // Ignores the error, because the stream of the watch reports the error too.
  session.on('error', () => undefined);
  session.setTimeout(IDLE_TIMEOUT_MS, () => {
    const pingTimer = setTimeout(() => session.destroy(new Error('no response to a ping')), PING_TIMEOUT_MS);
    session.ping(() => clearTimeout(pingTimer));
    session.once('close', () => clearTimeout(pingTimer));
  });
  return session;
}

interface WatchHooks {
  onOpen(): void;
  onName(name: string): void;
}

/** Opens a watch. Resolves when the open watch has ended for any reason; rejects if the watch could not be opened. */
async function watchOnce(session: ClientHttp2Session, options: KubeletWatchOptions, hooks: WatchHooks): Promise<void> {
  const { promise, resolve, reject } = Promise.withResolvers<void>();
  const stream: ClientHttp2Stream = session.request({
    [constants.HTTP2_HEADER_PATH]: `/api/v1/namespaces/${options.namespace}/configmaps?watch=true&timeoutSeconds=300`,
    authorization: `Bearer ${options.token}`,
  });
  let isOpen = false;
  let rest = '';
  stream.setEncoding('utf8');
  stream.on('response', (headers) => {
    isOpen = Number(headers[constants.HTTP2_HEADER_STATUS]) === 200;
    if (isOpen) hooks.onOpen();
    else reject(new Error(`status ${headers[constants.HTTP2_HEADER_STATUS]}`));
  });
  stream.on('data', (text: string) => {
    const lines = (rest + text).split('\n');
    rest = lines.pop() ?? '';
    for (const line of lines) {
      const { object } = JSON.parse(line) as { object: { metadata: { name: string } } };
      hooks.onName(object.metadata.name);
    }
  });
  stream.on('error', (error) => (isOpen ? resolve() : reject(error)));
  stream.on('close', () => (isOpen ? resolve() : reject(new Error('the stream closed before the watch was open'))));
  await promise.finally(() => stream.destroy());
}
