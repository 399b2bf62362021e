import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { describe, test } from 'node:test';
import { eventually, makeCertificate } from '@weir/testkit';
import type { AuditedRequest } from '@weir/tools';
import { parseAllDocuments } from 'yaml';
import { chartFile, WEIR_CHART } from '../../../src/chart/helm.ts';
import { type ChartFleet, RELEASE_NAMESPACE } from '../../../src/cluster/chart-fleet.ts';
import { assertProbeResult, waitForProbeResult } from '../../../src/cluster/probe.ts';
import { echoPods, echoService, namespaceManifest } from '../../../src/manifests.ts';
import {
  addressesIn,
  conditionIn,
  type ServiceStatus,
  serviceStatus,
  waitForStatus,
} from '../../../src/service-status.ts';
import { SHOP, servedAt } from './tenants.ts';

const EDGE = { class: 'weir.dev/edge', path: 'edge/echo', port: 8080 } as const;

/** Granted permissions that this test does not use. */
const USED_ELSEWHERE = {
  controller: [
    // Used for applying a patch to a missing object. The audit log records only the patch.
    'create events.events.k8s.io',
    'create tenantusages.weir.dev',
    // Used when a namespace has no Services left.
    'delete tenantusages.weir.dev',
    // Used for suspensions by rules, for the end of a suspension (`until`), and for suspensions that were made while the API server was
    // unreachable.
    'create suspensions.weir.dev',
    'delete suspensions.weir.dev',
    'get suspensions.weir.dev',
    // Only an admission policy checks this right, and the audit log does not contain the check.
    'name-author suspensions.weir.dev',
  ],
  // Used for signed-in users.
  console: [
    'create suspensions.weir.dev',
    'delete suspensions.weir.dev',
    'patch suspensions.weir.dev',
    'name-author suspensions.weir.dev',
  ],
  uninstall: [],
} as const;

export function uninstallation(fleet: () => ChartFleet): void {
  /** Waits until no object of the release exists. Draining pods exist for a while after the uninstallation. */
  const waitUntilRemoved = (release: string): Promise<void> =>
    eventually(async () => assert.deepEqual(await remainingObjects(fleet(), release), []), {
      timeoutMs: 60_000,
      intervalMs: 500,
    });

  describe('an uninstallation', () => {
    test('follows a second release with another class, existing Secrets and its own nodes', async () => {
      const { cluster, kubectl, install, apply } = fleet();
      const [first, second, third] = cluster.nodes;
      assert.ok(first && second && third);
      await kubectl('label', 'node', first.name, second.name, 'fleet=main');
      await kubectl('label', 'node', third.name, 'fleet=edge');
      await install('weir', '--reuse-values', '--set=proxy.nodeSelector.fleet=main');
      const own = existingSecrets('edge-weir');
      await apply(...own.objects);
      await install(
        'edge',
        `--set=controller.loadBalancerClass=${EDGE.class},proxy.nodeSelector.fleet=edge,crds.install=false`,
        ...own.helmArguments,
      );
      const made = await kubectl(
        'get',
        'secrets',
        '-n',
        RELEASE_NAMESPACE,
        '-l=app.kubernetes.io/instance=edge',
        '-o=name',
      );
      assert.equal(made.trim(), '');
      const service = echoService({
        namespace: 'edge',
        ports: [{ name: 'tcp', port: EDGE.port }],
        spec: { loadBalancerClass: EDGE.class },
      });
      await apply(namespaceManifest('edge'), echoPods({ namespace: 'edge', replicas: 1 }), service);
      const status = await waitForStatus(cluster, EDGE.path, (now) => addressesIn(now).length > 0);
      assert.deepEqual(addressesIn(status), [third.address]);
      await waitForProbeResult({ ...fleet(), addresses: [third.address] }, { port: EDGE.port }, 'answered');
      const shop = await servedAt(fleet());
      assert.ok(!shop.addresses.includes(third.address));
      await waitForProbeResult(shop, { port: SHOP.port }, 'answered');
    });

    test('clears status, closes ports, and leaves only the custom resources', async () => {
      const { cluster, helm, kubectl } = fleet();
      const shop = await servedAt(fleet());
      await helm('uninstall', 'weir', '--wait', '--timeout=3m');
      const status: ServiceStatus = await serviceStatus(cluster, SHOP.path);
      assert.deepEqual(addressesIn(status), []);
      for (const type of ['Accepted', 'Programmed', 'Degraded']) assert.equal(conditionIn(status, type), undefined);
      await assertProbeResult(shop, { port: SHOP.port }, 'refused');
      await waitUntilRemoved('weir');
      assert.equal((await kubectl('get', 'tenantusages', '-n', 'shop', '-o=name')).trim(), '');
      await kubectl('get', 'crd', 'tenantpolicies.weir.dev', 'suspensions.weir.dev', 'tenantusages.weir.dev');
      await kubectl('get', 'tenantpolicy', 'shop');
    });

    test('leaves the other release running', async () => {
      const [, , third] = fleet().cluster.nodes;
      await assertProbeResult({ ...fleet(), addresses: [third?.address ?? ''] }, { port: EDGE.port }, 'answered');
      await fleet().helm('uninstall', 'edge', '--wait', '--timeout=3m');
      await waitUntilRemoved('edge');
    });

    for (const [component, elsewhere] of Object.entries(USED_ELSEWHERE)) {
      test(`follows a release whose ${component} used exactly its granted permissions`, () => {
        const requests = fleet().cluster.auditedRequests();
        const used = new Set(requests.filter(({ account }) => account === `weir-${component}`).map(permissionText));
        assert.deepEqual([...new Set([...used, ...elsewhere])].sort(), [...grantedPermissions(component)].sort());
      });
    }

    test('does not block the deletion of namespaces', async () => {
      await fleet().kubectl('delete', 'namespace', RELEASE_NAMESPACE, 'shop', 'edge', '--timeout=90s');
    });
  });
}

/** Returns the names of all objects in the cluster with the label of the release, except CRDs. */
async function remainingObjects({ kubectl }: ChartFleet, release: string): Promise<readonly string[]> {
  const kinds = (await kubectl('api-resources', '--verbs=list', '-o=name')).trim().split('\n');
  const selector = `-l=app.kubernetes.io/instance=${release}`;
  const text = await kubectl('get', kinds.join(','), '-A', selector, '-o=name', '--ignore-not-found');
  return text
    .trim()
    .split('\n')
    .filter((line) => line !== '' && !line.startsWith('customresourcedefinition'));
}

// The Secrets of a release for which the chart generates no Secrets (see docs/existing-secrets.md).

/** The section of values that names the certificate Secret of each server. */
const CERTIFICATE_VALUES = {
  proxy: 'proxy.admin.tls',
  controller: 'controller.admin.tls',
  console: 'console.tls',
  redis: 'redis.tls',
} as const;

export interface ExistingSecrets {
  readonly objects: readonly object[];
  /** The helm arguments that name these Secrets. */
  readonly helmArguments: readonly string[];
}

/** Returns the Secrets for a release. `fullName` is the prefix of the release's object names, such as `weir` or `edge-weir`. */
export function existingSecrets(fullName: string): ExistingSecrets {
  const issuer = makeCertificate({ name: `authority of ${fullName}`, isAuthority: true });
  const certificates = Object.entries(CERTIFICATE_VALUES).map(([server, value]) => {
    const host = `${fullName}-${server}`;
    const names = [host, `${host}.${RELEASE_NAMESPACE}.svc`];
    const { chain, key } = makeCertificate({ name: host, names, issuer });
    const data = { 'tls.crt': chain, 'tls.key': key, 'ca.crt': issuer.certificate };
    return { value: `${value}.existingSecret`, secret: secretManifest(`own-${server}`, data) };
  });
  const passwords = Object.fromEntries(
    ['controller', 'proxy', 'console'].map((user) => [`${user}-password`, randomText()] as const),
  );
  const others = [
    { value: 'redis.auth.existingSecret', secret: secretManifest('own-passwords', passwords) },
    { value: 'adminToken.existingSecret', secret: secretManifest('own-token', { token: randomText() }) },
    { value: 'tls.fleetSecret', secret: secretManifest('own-fleet', { secret: randomText() }) },
  ];
  const all = [...certificates, ...others];
  return {
    objects: all.map(({ secret }) => secret),
    helmArguments: all.map(({ value, secret }) => `--set=${value}=${secret.metadata.name}`),
  };
}

function secretManifest(name: string, stringData: Readonly<Record<string, string>>) {
  return { apiVersion: 'v1', kind: 'Secret', metadata: { name, namespace: RELEASE_NAMESPACE }, stringData };
}

const randomText = (): string => randomBytes(20).toString('hex');

// The part of a Role that lists the permissions which the chart grants to a component.
interface Role {
  readonly rules: readonly {
    readonly apiGroups: readonly string[];
    readonly resources: readonly string[];
    readonly verbs: readonly string[];
  }[];
}

/** Returns the permissions of a component in the form `VERB RESOURCE.GROUP`. */
export function grantedPermissions(component: string): readonly string[] {
  const roles = parseAllDocuments(chartFile(WEIR_CHART, `rights/${component}.yaml`)).map((each) => each.toJS() as Role);
  return roles
    .flatMap(({ rules }) => rules)
    .flatMap(({ apiGroups, resources, verbs }) =>
      apiGroups.flatMap((group) =>
        resources.flatMap((resource) => verbs.map((verb) => permissionText({ verb, group, resource }))),
      ),
    );
}

export function permissionText({ verb, group, resource }: Omit<AuditedRequest, 'account'>): string {
  return `${verb} ${resource}${group === '' ? '' : `.${group}`}`;
}
