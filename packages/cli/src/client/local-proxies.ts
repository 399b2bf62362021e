// Sends requests to the proxies of this machine on their local admin sockets. These requests need neither the console, nor the controller,
// nor the API server, nor Redis.
import { readdir } from 'node:fs/promises';
import { userInfo } from 'node:os';
import { join } from 'node:path';
import type { SuspensionItem } from '@weir/console';
import { suspensionItemFor } from '@weir/console/suspension-item';
import type { Suspension } from '@weir/model';
import { errorMessage, UsageError } from '@weir/runtime/command-line';
import { Option } from 'commander';
import type { Terminal } from '../terminal.ts';
import { http } from './node-http.ts';
import type { SuspensionTargetJson } from './target.ts';

export interface LocalOptions {
  readonly local?: true;
  readonly state?: string;
}

/** The state directory of a proxy without the chart. With the chart, it contains the state directory of each fleet. */
const DEFAULT_STATE_DIRECTORY = '/var/lib/weir';
const TIMEOUT_MS = 5_000;

export function localOption(): Option {
  return new Option(
    '--local',
    'only on this node, through the Unix socket of its proxy; needs no console, controller, API server or Redis',
  ).conflicts(['server', 'token', 'tokenFile', 'caFile', 'kubeconfig']);
}

export function stateOption(): Option {
  return new Option(
    '--state <directory>',
    `with --local: the state directory of the proxy, or the directory that contains it (WEIR_STATE; default: ${DEFAULT_STATE_DIRECTORY})`,
  );
}

/** What one proxy of this machine answered. */
export interface LocalAnswer {
  readonly node: string;
  readonly items: readonly SuspensionItem[];
  /** How many Services of the node the target has. Undefined for a list, and while the node has no routing table. */
  readonly services: number | undefined;
  /** False if the change will not survive a restart of the proxy. */
  readonly isSaved: boolean;
}

export interface LocalOutcome {
  readonly answers: readonly LocalAnswer[];
  /** One message for each proxy that refused the request or did not answer. */
  readonly failures: readonly string[];
}

export interface LocalRequest {
  readonly method: 'GET' | 'POST';
  readonly path: '/suspend' | '/resume' | '/suspensions';
  readonly query: Readonly<Record<string, string>>;
}

/** Sends the request to all proxies of this machine. Throws `UsageError` if there is no proxy. */
export async function askLocalProxies(
  { env }: Pick<Terminal, 'env'>,
  options: LocalOptions,
  request: LocalRequest,
): Promise<LocalOutcome> {
  const answers: LocalAnswer[] = [];
  const failures: string[] = [];
  const directory = options.state ?? (env.WEIR_STATE || DEFAULT_STATE_DIRECTORY);
  for (const socketPath of await findSockets(directory)) {
    try {
      const { status, body } = await send(socketPath, request);
      const json = JSON.parse(body);
      if (status === 200) answers.push(answerFrom(json));
      else failures.push(String(json.error));
    } catch (error) {
      failures.push(`no proxy answers on ${socketPath} (${errorMessage(error)})`);
    }
  }
  return { answers, failures };
}

export function targetQuery(target: SuspensionTargetJson): Readonly<Record<string, string>> {
  const { type: _, ...names } = target;
  return names;
}

/** Returns the name of the user, also if the user became root with sudo; undefined if the system does not know the user. */
export function localUser({ env }: Pick<Terminal, 'env'>): Readonly<Record<string, string>> {
  try {
    return { by: env.SUDO_USER || userInfo().username };
  } catch {
    return {};
  }
}

const ADVICE =
  'run the command on a node as root, and name the state directory of the proxy with --state DIR or WEIR_STATE';

/**
 * Returns the paths of the admin sockets in a state directory, or in the only state directory that `directory` contains. Throws
 * `UsageError` if there is none, or if the state directories of several fleets are there.
 */
async function findSockets(directory: string): Promise<readonly string[]> {
  const own = await socketsIn(directory);
  if (own.length > 0) return own;
  const children = await readdir(directory, { withFileTypes: true });
  const paths = children.flatMap((child) => (child.isDirectory() ? [join(directory, child.name)] : [])).sort();
  const found = await Promise.all(
    paths.map(async (path) => ({ path, sockets: await socketsIn(path).catch(() => []) })),
  );
  const [first, ...others] = found.filter(({ sockets }) => sockets.length > 0);
  if (first === undefined) throw new UsageError(`${directory} has no directory of a proxy; ${ADVICE}`);
  if (others.length === 0) return first.sockets;
  const states = [first, ...others].map(({ path }) => `--state ${path}`);
  throw new UsageError(`this node has proxies of ${states.length} fleets; choose one: ${states.join(' or ')}`);
}

async function socketsIn(directory: string): Promise<readonly string[]> {
  try {
    const names = await readdir(directory);
    const proxies = names.filter((name) => name.startsWith('proxy-')).sort();
    return proxies.map((name) => join(directory, name, 'admin.sock'));
  } catch (error) {
    throw new UsageError(`${directory} cannot be read (${errorMessage(error)}); ${ADVICE}`, { cause: error });
  }
}

function send(socketPath: string, { method, path, query }: LocalRequest): Promise<{ status: number; body: string }> {
  const { promise, resolve, reject } = Promise.withResolvers<{ status: number; body: string }>();
  const target = `${path}?${new URLSearchParams(query)}`;
  const request = http.request({ socketPath, path: target, method, timeout: TIMEOUT_MS }, (response) => {
    let body = '';
    response.setEncoding('utf8').on('data', (text: string) => {
      body += text;
    });
    response.once('end', () => resolve({ status: response.statusCode ?? 0, body }));
    response.once('error', reject);
  });
  request.once('timeout', () => request.destroy(new Error(`no answer within ${TIMEOUT_MS / 1_000} s`)));
  request.once('error', reject);
  request.end();
  return promise;
}

function answerFrom(json: {
  readonly node: string;
  readonly suspensions: readonly Suspension[];
  readonly services?: number;
  readonly saved: boolean;
}): LocalAnswer {
  const items = json.suspensions.map((suspension) => suspensionItemFor(suspension, Date.now()));
  return { node: json.node, items, services: json.services, isSaved: json.saved };
}
