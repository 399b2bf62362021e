import type { NodeObject } from '@weir/model';
import type { Fields } from './fields.ts';
import { DNS_SUBDOMAIN, IP_ADDRESS } from './formats.ts';
import { readMeta } from './meta.ts';
import { type ParseResult, parseObject } from './projection.ts';

export function parseNode(raw: unknown): ParseResult<NodeObject> {
  return parseObject('Node', raw, (fields) => {
    const addresses = fields.object('status').objects('addresses');
    return {
      ...readMeta(fields, { name: DNS_SUBDOMAIN, labels: true }),
      internalIPs: Object.freeze(addressesOf(addresses, 'InternalIP')),
      externalIPs: Object.freeze(addressesOf(addresses, 'ExternalIP')),
      unschedulable: fields.object('spec').boolean('unschedulable', false),
    };
  });
}

/** In their order: the first of a family is the node's main one. */
function addressesOf(addresses: readonly Fields[], type: string): string[] {
  return addresses.filter((each) => each.text('type') === type).map((each) => each.requiredText('address', IP_ADDRESS));
}
