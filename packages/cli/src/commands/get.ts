import { systemClock, UsageError, wait } from '@weir/runtime';
import { Argument, type Command, InvalidArgumentError, Option } from 'commander';
import { type ConsoleClient, ConsoleError } from '../client/console-client.ts';
import { askLocalProxies, type LocalOptions, localOption, stateOption } from '../client/local-proxies.ts';
import type { ItemList } from '../client/responses.ts';
import { clientFor, type ServerOptions, serverOption } from '../client/server-options.ts';
import { type CommandContext, EXIT_OK, EXIT_PROBLEM } from '../command-context.ts';
import { colourizeFor } from '../output/ansi.ts';
import { OUTPUT_FORMATS, type OutputFormat, printResult } from '../output/format.ts';
import { hasError, identityOf, inNamespace, itemsText, type Kind, type ListItem } from '../output/list-text.ts';
import type { Terminal } from '../terminal.ts';
import { printPastSuspensions } from './past-suspensions.ts';

/** The kinds, each with the names that a user may type, as with kubectl. */
export const KIND_NAMES: Readonly<Record<Kind, readonly string[]>> = {
  tenants: ['tenants', 'tenant'],
  services: ['services', 'service', 'svc'],
  proxies: ['proxies', 'proxy'],
  problems: ['problems', 'problem'],
  suspensions: ['suspensions', 'suspension'],
};

const EXAMPLES = `
Examples:
  weir get services                      every Service, its state and the reason
  weir get svc web -n shop -o wide       one Service, with its nodes and UID
  weir get services -w                   list, then print each Service that changes
  weir get services -o json | jq '.items[] | select(.state != "Programmed")'
  weir get problems                      every problem of the fleet
  weir get suspensions                   who suspended which target, when and why
  weir get suspensions --past -n shop    who suspended and resumed the namespace and its Services

The exit code of weir get problems is 1 if a problem of severity error exists.`;

const LIST_FORMATS = [...OUTPUT_FORMATS, 'wide', 'name'] as const;
type ListFormat = (typeof LIST_FORMATS)[number];

interface GetOptions extends ServerOptions, LocalOptions {
  readonly namespace?: string;
  readonly allNamespaces?: true;
  readonly watch?: true;
  readonly past?: true;
  readonly tenant?: string;
  readonly output: ListFormat;
}

export function addGet(program: Command, { terminal, finish }: CommandContext): void {
  program
    .command('get')
    .description('list tenants, Services, proxies, problems or Suspensions')
    .addArgument(
      new Argument('<kind>', 'what to list: tenants, services (svc), proxies, problems or suspensions').argParser(
        parseKind,
      ),
    )
    .argument('[name]', 'show only the object with this name')
    .option('-n, --namespace <name>', 'show only this namespace (default: all namespaces)')
    .option('-A, --all-namespaces', 'show all namespaces, the default')
    .addOption(
      new Option('--past', 'suspensions: all Suspensions and releases of the last two years, oldest first').conflicts([
        'watch',
        'local',
      ]),
    )
    .option('--tenant <name>', 'with --past: show only this tenant, its namespaces and its Services')
    .option('-w, --watch', 'print each object that changes, until Ctrl-C')
    .addOption(new Option('-o, --output <format>', 'output format').choices(LIST_FORMATS).default('table'))
    .addOption(localOption().conflicts('watch'))
    .addOption(stateOption())
    .addOption(serverOption())
    .addHelpText('after', EXAMPLES)
    .action(async (kind: Kind, name: string | undefined, options: GetOptions) => {
      if (options.namespace !== undefined && kind === 'proxies')
        throw new UsageError('proxies have no namespace; omit -n');
      for (const flag of ['local', 'past'] as const)
        if (options[flag] && kind !== 'suspensions')
          throw new UsageError(`--${flag} is only for weir get suspensions; omit --${flag}`);
      if (options.tenant !== undefined && !options.past)
        throw new UsageError('--tenant is only for weir get suspensions --past; omit --tenant');
      const query = { kind, name, ...options };
      const client = clientFor(terminal, options);
      if (options.past) return printPastSuspensions(terminal, client, query);
      const items = options.local ? await localSuspensions(terminal, query) : await fetchItems(client, query);
      if (name !== undefined && items.length === 0) throw notFoundError(query);
      printItems(terminal, items, { ...options, kind, isUpdate: false });
      if (options.watch) await watchItems(client, { query, items, terminal });
      else if (kind === 'problems') finish(hasError(items) ? EXIT_PROBLEM : EXIT_OK);
    });
}

function parseKind(text: string): Kind {
  const found = (Object.keys(KIND_NAMES) as Kind[]).find((kind) => KIND_NAMES[kind].includes(text));
  if (found === undefined) throw new InvalidArgumentError(`Use one of ${Object.keys(KIND_NAMES).join(', ')}.`);
  return found;
}

interface Query extends GetOptions {
  readonly kind: Kind;
  readonly name: string | undefined;
}

async function fetchItems(client: ConsoleClient, query: Query): Promise<readonly ListItem[]> {
  const { items } = await client.get<ItemList<ListItem>>(`/api/v1/${query.kind}`);
  return selectItems(items, query);
}

/** Returns the suspensions that the proxies of this machine have only for this node. */
async function localSuspensions(terminal: Terminal, query: Query): Promise<readonly ListItem[]> {
  const request = { method: 'GET', path: '/suspensions', query: {} } as const;
  const { answers, failures } = await askLocalProxies(terminal, query, request);
  for (const failure of failures) terminal.err(`weir: ${failure}\n`);
  return selectItems(
    answers.flatMap(({ items }) => items),
    query,
  );
}

function selectItems(items: readonly ListItem[], { kind, name, namespace }: Query): readonly ListItem[] {
  return items.filter(
    (item) =>
      (namespace === undefined || inNamespace(kind, item, namespace)) &&
      (name === undefined || [item.name, identityOf(kind, item)].includes(name) || item.node === name),
  );
}

function notFoundError({ kind, name, namespace }: Query): ConsoleError {
  const where = namespace === undefined ? '' : ` in namespace "${namespace}"`;
  return new ConsoleError('NOT_FOUND', `no ${KIND_NAMES[kind][1]} "${name}"${where}; \`weir get ${kind}\` lists all`);
}

interface PrintOptions extends GetOptions {
  readonly kind: Kind;
  /** Whether the items changed after the list was printed. */
  readonly isUpdate: boolean;
}

function printItems(terminal: Terminal, items: readonly ListItem[], { kind, output, isUpdate }: PrintOptions): void {
  const format: OutputFormat = output === 'json' || output === 'yaml' ? output : 'table';
  const paint = colourizeFor(terminal.colour);
  const text = (): string =>
    output === 'name'
      ? items.map((item) => `${KIND_NAMES[kind][1]}/${identityOf(kind, item)}\n`).join('')
      : itemsText(kind, items, { paint, isWide: output === 'wide', hasTitles: !isUpdate });
  if (!isUpdate) printResult(terminal, format, { data: { items }, table: text });
  else if (format === 'table') terminal.out(text());
  else for (const item of items) printResult(terminal, format, { data: item, table: text });
}

/** How often the console is asked for changes. A Service's state changes with heartbeats, which proxies send once a second. */
const WATCH_INTERVAL_MS = 1_000;

interface Watch {
  readonly query: Query;
  readonly items: readonly ListItem[];
  readonly terminal: Terminal;
}

/** Prints the items that changed, until the signal is aborted. */
async function watchItems(client: ConsoleClient, { query, items, terminal }: Watch): Promise<void> {
  let known = fingerprintsOf(query.kind, items);
  while (!terminal.signal.aborted) {
    await wait(systemClock, WATCH_INTERVAL_MS, terminal.signal).catch(() => {});
    if (terminal.signal.aborted) return;
    const current = await fetchItems(client, query);
    const changed = current.filter((item) => known.get(identityOf(query.kind, item)) !== JSON.stringify(item));
    known = fingerprintsOf(query.kind, current);
    if (changed.length > 0) printItems(terminal, changed, { ...query, isUpdate: true });
  }
}

function fingerprintsOf(kind: Kind, items: readonly ListItem[]): ReadonlyMap<string, string> {
  return new Map(items.map((item) => [identityOf(kind, item), JSON.stringify(item)]));
}
