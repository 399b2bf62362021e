import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { freePort } from '@weir/testkit';
import { cpuTimeWithoutMainThread } from '../measure/proc-stats.ts';
import { runOn, SUBJECT_PROCESSOR } from '../processes/processors.ts';
import { freePorts } from '../subjects/free-ports.ts';
import type { BackendPorts, Ledger, Subject, TrafficTotals } from '../subjects/subject.ts';
import { startWeirServices } from '../subjects/weir.ts';
import {
  INACTIVE_HTTP_SERVICE_LIMITS,
  INACTIVE_SERVICE_LIMITS,
  serviceManifest,
  tenantPolicyManifest,
} from '../subjects/weir-manifests.ts';

/** The Services. `tcp` and `http` relay to the same nginx: `tcp` relays bytes, and `http` relays requests. */
export const COST_BACKENDS = ['tcp', 'stream', 'http', 'datagrams'] as const;
export type CostBackend = (typeof COST_BACKENDS)[number];
export type CostPorts = Readonly<Record<CostBackend, number>>;

/** `weir-unmetered-2` is a second process of `weir-unmetered`. The ratio of the two shows how exact the ratio of `weir` is. */
export const COST_SUBJECTS = ['weir', 'weir-unmetered', 'weir-unmetered-2'] as const;
export type CostSubjectName = (typeof COST_SUBJECTS)[number];

const NAMESPACE = 'bench';
const DESCRIPTIONS: Readonly<Partial<Record<CostSubjectName, string>>> = {
  'weir-unmetered': 'the same process without counters, limiters, shaping and leases',
  'weir-unmetered-2': 'a second process of weir-unmetered',
};
const UNMETERED_PROXY = fileURLToPath(new URL('./unmetered-proxy.ts', import.meta.url));

/**
 * Starts Weir with limits that are never reached, on the processor of the subjects. The other subjects have the same limits, but
 * neither count nor check anything.
 */
export async function startCostSubject(
  name: CostSubjectName,
  backends: BackendPorts,
  { profileDirectory }: { readonly profileDirectory?: string } = {},
): Promise<Subject<CostBackend>> {
  const { stream, datagrams, echo: tcp } = await freePorts();
  const ports: CostPorts = { tcp, stream, datagrams, http: await freePort() };
  const manifests = costManifests(ports, backends);
  const subject = await startWeirServices<CostBackend>(
    { manifests, ports, backends: COST_BACKENDS },
    {
      limits: 'every-inactive',
      nodeOptions: name === 'weir' ? [] : ['--import', UNMETERED_PROXY],
      ...(profileDirectory === undefined ? {} : { profileDirectory: join(profileDirectory, name) }),
    },
  );
  runOn(SUBJECT_PROCESSOR, subject.pid);
  const description = DESCRIPTIONS[name] ?? subject.description;
  return { ...subject, name, description, cpuTime: cpuTimeWithoutMainThread };
}

export function costManifests(ports: CostPorts, backends: BackendPorts): string {
  const services = COST_BACKENDS.map((name) =>
    serviceManifest(
      {
        ...{ name, namespace: NAMESPACE, port: ports[name], protocol: name === 'datagrams' ? 'UDP' : 'TCP' },
        ...(name === 'http'
          ? { appProtocol: 'http', annotations: INACTIVE_HTTP_SERVICE_LIMITS }
          : { annotations: INACTIVE_SERVICE_LIMITS }),
      },
      { target: backends[name === 'tcp' ? 'http' : name], addresses: ['127.0.0.1'] },
    ),
  );
  return [...services, tenantPolicyManifest('every-inactive')].join('---\n');
}

/** Returns a description of each counter that is not 0. */
export function unexpectedCounts(ledger: Ledger<CostBackend>): string[] {
  return COST_BACKENDS.flatMap((backend) =>
    (Object.entries(ledger[backend]) as [keyof TrafficTotals, number][])
      .filter(([, count]) => count !== 0)
      .map(([counter, count]) => `${counter} of "${backend}" is ${count} instead of 0`),
  );
}
