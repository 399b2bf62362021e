// A real API server with people of several rights, and a way to it that a test can break.
import { fileURLToPath } from 'node:url';
import { KubeConfig } from '@kubernetes/client-node';
import { type ApiServerProxy, type ControlPlane, startApiServerProxy, startControlPlane } from '@weir/testkit';

const CHARTS = fileURLToPath(new URL('../../../../charts', import.meta.url));

/** The service accounts of namespace `people`. */
export const ACCOUNTS = ['shop-dev', 'rival-dev', 'auditor', 'operator', 'stopper', 'newcomer'] as const;
export type Account = (typeof ACCOUNTS)[number];

export interface RbacCluster extends AsyncDisposable {
  readonly plane: ControlPlane;
  /** As the console of the chart: with exactly its rights, and through `proxy`. */
  readonly kubeconfig: KubeConfig;
  readonly proxy: ApiServerProxy;
  token(account: string, ...args: string[]): Promise<string>;
  /** To be applied again after a test has taken one away. */
  readonly roles: string;
}

const VIEW_RULE = { apiGroups: ['weir.dev'], resources: ['tenantusages'], verbs: ['get'] };

export async function startRbacCluster(): Promise<RbacCluster> {
  const plane = await startControlPlane();
  const { kubectl } = plane;
  await kubectl('apply', '-f', `${CHARTS}/weir-crds/definitions`, '-f', `${CHARTS}/weir/rights/console.yaml`);
  await kubectl('wait', '--for=condition=Established', 'crd', '--all', '--timeout=30s');
  const roles = JSON.stringify({ apiVersion: 'v1', kind: 'List', items: objects() });
  await kubectl('apply', '-f', '-', { stdin: roles });
  const token = async (account: string, ...args: string[]): Promise<string> =>
    (await kubectl('create', 'token', account, '-n', 'people', ...args)).trim();
  const admin = new KubeConfig();
  admin.loadFromFile(plane.kubeconfig);
  const ca = Buffer.from(admin.getCurrentCluster()?.caData ?? '', 'base64').toString();
  const proxy = await startApiServerProxy({ server: plane.server, ca });
  const kubeconfig = new KubeConfig();
  kubeconfig.loadFromClusterAndUser(
    { name: 'test', server: proxy.server, skipTLSVerify: true },
    { name: 'console', token: await token('weir-console') },
  );
  return {
    plane,
    kubeconfig,
    proxy,
    token,
    roles,
    async [Symbol.asyncDispose]() {
      await proxy.close();
      await plane.close();
    },
  };
}

function objects(): object[] {
  const rbac = 'rbac.authorization.k8s.io';
  const subjects = (name: string): object[] => [{ kind: 'ServiceAccount', name, namespace: 'people' }];
  const roleRef = (kind: string, name: string): object => ({ apiGroup: rbac, kind, name });
  const bindingOf = (name: string): object => ({
    apiVersion: `${rbac}/v1`,
    kind: 'ClusterRoleBinding',
    metadata: { name },
    roleRef: roleRef('ClusterRole', name),
    subjects: subjects(name),
  });
  const clusterWide = (name: string, rules: readonly object[]): object[] => [
    { apiVersion: `${rbac}/v1`, kind: 'ClusterRole', metadata: { name }, rules },
    bindingOf(name),
  ];
  const inNamespace = (name: string, namespace: string, rules: readonly object[]): object[] => [
    { apiVersion: `${rbac}/v1`, kind: 'Role', metadata: { name, namespace }, rules },
    {
      apiVersion: `${rbac}/v1`,
      kind: 'RoleBinding',
      metadata: { name, namespace },
      roleRef: roleRef('Role', name),
      subjects: subjects(name),
    },
  ];
  const suspending = (...verbs: string[]): object => ({ apiGroups: ['weir.dev'], resources: ['suspensions'], verbs });
  return [
    ...['people', 'shop', 'rival'].map((name) => ({ apiVersion: 'v1', kind: 'Namespace', metadata: { name } })),
    ...[...ACCOUNTS, 'weir-console'].map((name) => ({
      apiVersion: 'v1',
      kind: 'ServiceAccount',
      metadata: { name, namespace: 'people' },
    })),
    ...inNamespace('shop-dev', 'shop', [{ ...VIEW_RULE, resourceNames: ['test'] }]),
    ...inNamespace('rival-dev', 'rival', [VIEW_RULE]),
    ...clusterWide('auditor', [VIEW_RULE]),
    ...clusterWide('operator', [VIEW_RULE, suspending('create', 'delete')]),
    ...clusterWide('stopper', [suspending('create')]),
    bindingOf('weir-console'),
  ];
}
