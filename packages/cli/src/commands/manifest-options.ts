import { isIP } from 'node:net';
import type { GivenNode } from '@weir/controller';
import { type Command, InvalidArgumentError, Option } from 'commander';

/** `-f`, `--node` and `--classless`: the same for `translate`, which tries, and `standalone`, which does. */
export interface ManifestOptions {
  readonly filename: readonly string[];
  readonly node?: readonly GivenNode[];
  readonly classless?: boolean;
}

export function addManifestOptions(command: Command): Command {
  return command
    .addOption(
      new Option('-f, --filename <path>', 'directory or file of manifests (repeatable)')
        .argParser(collect)
        .makeOptionMandatory(),
    )
    .addOption(
      new Option(
        '--node <name=address>',
        'a node of the fleet (repeatable; default: the Nodes of the manifests, else local=127.0.0.1)',
      ).argParser(collectNodes),
    )
    .option('--classless', 'take Services that name no loadBalancerClass, too');
}

function collect(value: string, before: readonly string[] = []): readonly string[] {
  return [...before, value];
}

const NODE_NAME = /^[a-z0-9]([a-z0-9.-]{0,251}[a-z0-9])?$/;

function collectNodes(value: string, before: readonly GivenNode[] = []): readonly GivenNode[] {
  const at = value.indexOf('=');
  const name = value.slice(0, at);
  const address = value.slice(at + 1);
  if (at < 1 || !NODE_NAME.test(name) || isIP(address) === 0) {
    throw new InvalidArgumentError('Use NAME=ADDRESS, such as edge-1=192.0.2.10.');
  }
  if (before.some((node) => node.name === name)) throw new InvalidArgumentError(`Node "${name}" is given twice.`);
  return [...before, { name, address }];
}
