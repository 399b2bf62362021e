import type { PodObject } from '@weir/model';
import { DNS_LABEL, DNS_SUBDOMAIN, IP_ADDRESS } from './formats.ts';
import { type ParseResult, parseObject } from './projection.ts';

const ENDED_PHASES = ['Succeeded', 'Failed'];

/**
 * A pod that has ended keeps its address in its status while the network may give it to another namespace's pod: believing it would
 * let its owner reach that one.
 */
export function parsePod(raw: unknown): ParseResult<PodObject> {
  return parseObject('Pod', raw, (fields) => {
    const metadata = fields.object('metadata');
    const status = fields.object('status');
    const ips = status.objects('podIPs').flatMap((each) => each.text('ip', IP_ADDRESS) ?? []);
    const ip = status.text('podIP', IP_ADDRESS);
    const all = ip === null || ips.includes(ip) ? ips : [ip, ...ips];
    return {
      namespace: metadata.requiredText('namespace', DNS_LABEL),
      name: metadata.requiredText('name', DNS_SUBDOMAIN),
      ips: Object.freeze(ENDED_PHASES.includes(status.text('phase') ?? '') ? [] : all),
      hostNetwork: fields.object('spec').boolean('hostNetwork', false),
    };
  });
}
