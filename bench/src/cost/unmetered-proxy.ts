// Node loads this file before Weir, and before each worker thread of Weir (`--import`). The file appends assignments to the modules
// that count and limit, so that their functions and methods do nothing. No option of Weir does this, because no operator may
// want a proxy that does not count.
import { registerHooks } from 'node:module';

/** Replaces members of a class. Throws if a member was renamed, because the proxy would then count or limit again. */
const REPLACE_MEMBERS = `
function replaceMembers({ name, prototype }, members) {
  for (const member of Object.keys(members))
    if (!Object.hasOwn(prototype, member)) throw new Error(\`unmetered-proxy.ts: \${name} has no member "\${member}"\`);
  Object.defineProperties(prototype, Object.getOwnPropertyDescriptors(members));
}`;

/** What is appended to each module. The keys are paths within `packages/proxy/src`. */
const NO_OPS: Readonly<Record<string, string>> = {
  'metering/counters.ts': 'addToCounter = countDuration = countOutcome = countRequestRefusal = () => {};',
  'metering/request-meter.ts':
    'replaceMembers(RequestMeter, { begin() {}, relayAnswer() {}, answer() {}, complete() {}, abandon() {} });',
  'relay/counted-connection.ts': `replaceMembers(CountedConnection, {
    countSent: () => false,
    writeToClient(bytes) { this.client.write(bytes); },
    addBufferedBytes() {},
    pause(source) { source?.readStop(); },
    currentWindow: () => 'full',
    endCounting() {},
    countAllAsSent() {},
    countFor(counters) { this.counters = counters; },
  });`,
  'limits/tenant-buffers.ts': `const UNLIMITED_BUFFERS = { window: 'full' };
    replaceMembers(WorkerBuffers, { of: () => UNLIMITED_BUFFERS });`,
  'limits/admission.ts': `const ADMISSION = {
      limiters: { service: {}, tenant: { state: { readBandwidthVersion: () => 0 } } },
      admitHello: () => true,
      admitRequest: () => true,
      admitClient: () => true,
      release() {},
    };
    replaceMembers(AdmissionController, { admit: () => ADMISSION });`,
  'limits/new-flow-budget.ts': 'replaceMembers(NewFlowBudget, { tryTake: () => true });',
  'limits/shaper.ts': `const UNLIMITED_DIRECTION = { isLimited: false, tryTake: () => true, readLimits() {} };
    const UNLIMITED_BANDWIDTH = { in: UNLIMITED_DIRECTION, out: UNLIMITED_DIRECTION };
    replaceMembers(Shaper, { limitersFor: () => UNLIMITED_BANDWIDTH, limitersForTenant: () => UNLIMITED_BANDWIDTH });
    replaceMembers(SessionThrottle, {
      mayRead: () => true,
      quantumBytes: () => Infinity,
      moveTo() {},
      end() {},
      get isThrottled() { return false; },
    });`,
  'limits/lease-client.ts': `replaceMembers(LeaseClient, {
    start() {},
    onLimitsChanged() {},
    onStoreReady() {},
    beforeListenersOpen() {},
    get mayOpenListeners() { return true; },
  });`,
};

const PROXY_SOURCE = new URL('../../../packages/proxy/src/', import.meta.url).href;

registerHooks({
  load(url, context, nextLoad) {
    const loaded = nextLoad(url, context);
    const noOps = url.startsWith(PROXY_SOURCE) ? NO_OPS[url.slice(PROXY_SOURCE.length)] : undefined;
    if (noOps === undefined) return loaded;
    return { ...loaded, source: `${sourceText(loaded.source)}\n${REPLACE_MEMBERS}\n${noOps}\n` };
  },
});

function sourceText(source: string | ArrayBuffer | NodeJS.TypedArray | null | undefined): string {
  if (typeof source === 'string') return source;
  if (source === null || source === undefined) throw new Error('unmetered-proxy.ts: a module has no source');
  return new TextDecoder().decode(source);
}
