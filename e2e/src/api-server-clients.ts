import { type ClientHttp2Session, type ClientHttp2Stream, connect, constants } from 'node:http2';
import { setTimeout as delay } from 'node:timers/promises';
import { spawnProcess } from '@weir/testkit';
import { programPath } from '@weir/tools';

// Somebody who runs kubectl all the time, one after the other, and tries again when it fails.
export interface KubectlLoop {
  /** How many times it has answered. */
  readonly succeeded: number;
  /** What failed, each with how many had failed in a row then. */
  readonly failures: readonly { readonly inARow: number; readonly said: string }[];
  close(): Promise<void>;
}

export function startKubectlLoop(kubeconfig: string, args: readonly string[]): KubectlLoop {
  const failures: { inARow: number; said: string }[] = [];
  let answered = 0;
  let inARow = 0;
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
      inARow = code === 0 ? 0 : inARow + 1;
      if (code === 0) answered += 1;
      else failures.push({ inARow, said: kubectl.output() });
    }
  };
  const looping = loop();
  return {
    get succeeded() {
      return answered;
    },
    failures,
    async close() {
      isOver = true;
      await looping;
    },
  };
}

// What a kubelet has open: one HTTP/2 connection that it keeps for days, a watch over it that is asked for again when it ends, and a
// ping after half a minute of silence.
export interface KubeletWatchOptions {
  readonly server: string;
  readonly ca: string;
  readonly token: string;
  readonly namespace: string;
}

export interface KubeletWatch {
  /** Names of the ConfigMaps that it has seen. */
  readonly seenNames: ReadonlySet<string>;
  /** How many watches were open, one after the other. */
  readonly openedWatches: number;
  /** What failed before it was open, each with how many had failed in a row then. */
  readonly failures: readonly { readonly inARow: number; readonly said: string }[];
  close(): Promise<void>;
}

/** As of client-go. */
const IDLE_TIMEOUT_MS = 30_000;
const PING_TIMEOUT_MS = 15_000;
const RETRY_DELAY_MS = 800;

export function startKubeletWatch(options: KubeletWatchOptions): KubeletWatch {
  const seenNames = new Set<string>();
  const failures: { inARow: number; said: string }[] = [];
  let opened = 0;
  let inARow = 0;
  let isOver = false;
  let session: ClientHttp2Session | undefined;
  const loop = async (): Promise<void> => {
    while (!isOver) {
      try {
        if (session === undefined || session.closed || session.destroyed) session = openSession(options);
        await watchOnce(session, options, {
          onOpen() {
            opened += 1;
            inARow = 0;
          },
          onName: (name) => void seenNames.add(name),
        });
      } catch (error) {
        if (isOver) return;
        inARow += 1;
        failures.push({ inARow, said: String(error) });
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
  // Whoever waits for a stream of it hears of it.
  session.on('error', () => undefined);
  session.setTimeout(IDLE_TIMEOUT_MS, () => {
    const limit = setTimeout(() => session.destroy(new Error('no answer to a ping')), PING_TIMEOUT_MS);
    session.ping(() => clearTimeout(limit));
    session.once('close', () => clearTimeout(limit));
  });
  return session;
}

interface WatchHooks {
  onOpen(): void;
  onName(name: string): void;
}

/** Resolves when a watch that was open has ended, however that was; rejects when it could not be opened. */
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
  stream.on('close', () => (isOpen ? resolve() : reject(new Error('closed before it was open'))));
  await promise.finally(() => stream.destroy());
}
