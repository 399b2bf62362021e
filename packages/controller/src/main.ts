// The controller process: reads objects from an API server, writes the routing table to the fleet's store, and reports status.
import {
  DEFAULT_FLEET_SETTINGS,
  PORT_RANGE_FORMAT,
  type PortRange,
  parseCidr,
  parsePortRange,
  parseSharedPort,
  reservedSharedPorts,
  SHARED_PORT_FORMAT,
} from '@weir/model';
import {
  ADMIN_TOKEN_FORMAT,
  boolean,
  ConfigError,
  systemClock as clock,
  createAdminServer,
  createLogger,
  Health,
  hostPortOrOff,
  integer,
  list,
  logLevel,
  optional,
  type Part,
  parseConfig,
  path,
  runProcess,
  type SettingFormat,
  setting,
  text,
  UsageError,
} from '@weir/runtime';
import { createMetrics } from '@weir/runtime/metrics';
import {
  addStoreMetrics,
  FLEET_NAME_FORMAT,
  openRedisStore,
  REDIS_SETTINGS,
  rethrowRefusedAsUsage,
  type Store,
  withRedisAccess,
} from '@weir/store';
import { loadDefaultPolicy } from './config/default-policy.ts';
import { SECRET_SETTINGS, secretAccessFor, validateSecretSettings } from './config/secret-settings.ts';
import { type KubernetesController, startKubernetesController } from './controller/kubernetes-controller.ts';
import { loadKubeConfig } from './kubernetes/kube-config.ts';
import { DNS_LABEL } from './parse/fields.ts';

const CIDR: SettingFormat<string> = {
  allowed: 'a network such as 10.96.0.0/16',
  parse: (raw) => parseCidr(raw)?.text,
};

const SHARED_PORT: SettingFormat<number> = { allowed: SHARED_PORT_FORMAT, parse: parseSharedPort };

const RESERVED_PORTS: SettingFormat<PortRange> = { allowed: PORT_RANGE_FORMAT, parse: parsePortRange };

/** The settings of the process. The Kubernetes client library also reads KUBECONFIG. */
const CONFIG = {
  fleet: text('WEIR_FLEET', { default: 'weir', ...FLEET_NAME_FORMAT }),
  ...REDIS_SETTINGS,
  level: logLevel('WEIR_LOG_LEVEL'),
  admin: hostPortOrOff('WEIR_ADMIN', { default: { host: '127.0.0.1', port: 8687 } }),
  adminTls: optional(path('WEIR_ADMIN_TLS')),
  adminToken: optional(setting('WEIR_ADMIN_TOKEN', ADMIN_TOKEN_FORMAT)),
  loadBalancerClass: text('WEIR_LOAD_BALANCER_CLASS', {
    default: 'weir.dev/weir',
    pattern: /^(?:[a-z0-9][-a-z0-9.]*\/)?[A-Za-z0-9](?:[-\w.]*[A-Za-z0-9])?$/,
    allowed: 'the name of a class, such as weir.dev/weir',
  }),
  classless: boolean('WEIR_CLASSLESS', { default: false }),
  cleanupFinalizer: boolean('WEIR_CLEANUP_FINALIZER', { default: false }),
  defaultTenantPolicy: optional(path('WEIR_DEFAULT_TENANT_POLICY')),
  sharedPorts: list('WEIR_SHARED_PORTS', SHARED_PORT, { default: [] }),
  reservedPorts: list('WEIR_RESERVED_PORTS', RESERVED_PORTS, { default: [] }),
  maxPortsPerService: integer('WEIR_MAX_PORTS_PER_SERVICE', {
    default: DEFAULT_FLEET_SETTINGS.maxPortsPerService,
    min: 1,
    max: 65_535,
  }),
  serviceCidrs: list('WEIR_SERVICE_CIDRS', CIDR, { default: [] }),
  namespace: optional(
    text('WEIR_NAMESPACE', { pattern: /^[a-z0-9](?:[-a-z0-9]{0,61}[a-z0-9])?$/, allowed: DNS_LABEL.allowed }),
  ),
  ...SECRET_SETTINGS,
} as const;

await runProcess('weir-controller', () => {
  const config = withRedisAccess(parseConfig(CONFIG, process.env));
  const { fleet, redis, level, admin, loadBalancerClass, classless, sharedPorts, reservedPorts, serviceCidrs } = config;
  const mistakes = validateSecretSettings(config);
  if (mistakes.length > 0) throw new ConfigError(mistakes);
  const conflicting = reservedSharedPorts(config);
  if (conflicting.length > 0) {
    throw new UsageError(
      `WEIR_SHARED_PORTS and WEIR_RESERVED_PORTS both contain ${conflicting.join(', ')}; list each port in only one of the two`,
    );
  }
  const log = createLogger({ name: 'controller', level });
  const kubeConfig = loadKubeConfig();
  const namespace = config.namespace ?? kubeConfig.getContextObject(kubeConfig.getCurrentContext())?.namespace;
  const { policy: defaultPolicy, problems } = loadDefaultPolicy(config.defaultTenantPolicy);
  for (const { subject, message } of problems)
    log.warn({ subject, reason: message }, 'problem in the default tenant policy');
  const settings = {
    ...DEFAULT_FLEET_SETTINGS,
    loadBalancerClass,
    classless,
    defaultPolicy,
    sharedPorts,
    reservedPorts,
    maxPortsPerService: config.maxPortsPerService,
    trust: { kind: 'pods', serviceCidrs },
    secretAccess: secretAccessFor(config),
  } as const;
  const health = new Health();
  const metrics = createMetrics({ processMetrics: 'on', log });
  let store: Store;
  addStoreMetrics(metrics, () => store);
  let controller: KubernetesController;

  const storePart: Part = {
    name: 'store',
    async start() {
      store = await openRedisStore({ ...redis, fleet, log: log.child({ part: 'store' }), clock }).catch(
        rethrowRefusedAsUsage,
      );
    },
    close: () => store.close(),
  };
  const controllerPart: Part = {
    name: 'controller',
    start() {
      controller = startKubernetesController({
        kubeConfig,
        store,
        settings,
        fleetSecret: config.fleetSecret,
        cleanupFinalizer: config.cleanupFinalizer,
        fleet,
        namespace: namespace ?? 'weir-system',
        clock,
        log,
        metrics,
      });
      health.add('source', 'ready', () =>
        controller.isSynced ? undefined : 'the first full read of the API server is not complete',
      );
      health.add('store', 'ready', () =>
        store.connection === 'ready' ? undefined : (store.connectionError?.message ?? 'the store is unreachable'),
      );
    },
    close: () => controller.close(),
  };
  const adminPart = (address: Exclude<typeof admin, 'off'>): Part =>
    createAdminServer({
      ...address,
      tls: config.adminTls,
      token: config.adminToken,
      health,
      metrics,
      log: log.child({ part: 'admin' }),
      advice: 'set WEIR_ADMIN to a free HOST:PORT, or to off',
      routes: {
        '/problems': () => ({ items: controller.problems() }),
        '/leader': () => ({ isLeader: controller.isLeader }),
      },
    });
  return { log, parts: [storePart, controllerPart, ...(admin === 'off' ? [] : [adminPart(admin)])] };
});
