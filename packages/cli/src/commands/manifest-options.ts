import { isIP } from 'node:net';
import type { CommandLineNode } from '@weir/controller';
import { PORT_RANGE_FORMAT, type PortRange, parsePortRange, parseSharedPort, SHARED_PORT_FORMAT } from '@weir/model';
import { type Command, InvalidArgumentError, Option } from 'commander';
import type { FleetOptions } from '../standalone/directory-settings.ts';
import type { Terminal } from '../terminal.ts';

/** The options that `weir translate` and `weir standalone` share. */
export interface ManifestOptions extends Partial<FleetOptions> {
  readonly filename: readonly string[];
  readonly node?: readonly CommandLineNode[];
}

/** Reads standard input if the user asked for it with `-f -`. Resolves with undefined otherwise. */
export async function readManifestInput(
  { filename }: ManifestOptions,
  terminal: Pick<Terminal, 'readInput'>,
): Promise<string | undefined> {
  return filename.includes('-') ? await terminal.readInput() : undefined;
}

export function addManifestOptions(command: Command): Command {
  return command
    .addOption(
      new Option('-f, --filename <path>', 'file or directory of manifests, or - for standard input (repeatable)')
        .argParser(appendPath)
        .makeOptionMandatory(),
    )
    .addOption(
      new Option(
        '--node <name=address>',
        'node of the fleet (repeatable; default: the Nodes of the manifests, else local=127.0.0.1)',
      ).argParser(appendNode),
    )
    .option('--classless', 'also serve Services without a loadBalancerClass')
    .addOption(
      new Option(
        '--shared-ports <ports>',
        'TCP ports that Services share by host name, such as 443,8443 (default: none)',
      ).argParser(parseSharedPorts),
    )
    .addOption(
      new Option(
        '--reserved-ports <ports>',
        'ports that no Service may use, in addition to the ports of Kubernetes and Weir, such as 9100,4000-4010 (default: none)',
      ).argParser(parseReservedPorts),
    );
}

function parseSharedPorts(value: string): readonly number[] {
  return [...new Set(parseList(value, parseSharedPort, SHARED_PORT_FORMAT))];
}

function parseReservedPorts(value: string): readonly PortRange[] {
  return parseList(value, parsePortRange, PORT_RANGE_FORMAT);
}

function parseList<T>(value: string, parse: (text: string) => T | undefined, allowed: string): readonly T[] {
  const items = value.split(',').map((text) => parse(text.trim()));
  if (!items.every((item) => item !== undefined)) {
    throw new InvalidArgumentError(`Use a comma-separated list. Each item must be ${allowed}.`);
  }
  return items;
}

function appendPath(value: string, previous: readonly string[] = []): readonly string[] {
  return [...previous, value];
}

const NODE_NAME_PATTERN = /^[a-z0-9]([a-z0-9.-]{0,251}[a-z0-9])?$/;

function appendNode(value: string, previous: readonly CommandLineNode[] = []): readonly CommandLineNode[] {
  const separator = value.indexOf('=');
  const name = value.slice(0, separator);
  const address = value.slice(separator + 1);
  if (separator < 1 || !NODE_NAME_PATTERN.test(name) || isIP(address) === 0) {
    throw new InvalidArgumentError('Use NAME=ADDRESS, such as edge-1=192.0.2.10.');
  }
  if (previous.some((node) => node.name === name)) throw new InvalidArgumentError(`Node "${name}" is given twice.`);
  return [...previous, { name, address }];
}
