import { fileURLToPath } from 'node:url';
import type { Inspector } from '../measure/inspector.ts';

/** The counters of a Service in the proxy. */
export type ServiceView = {
  readonly name: string;
  readonly active: number;
  readonly counters: { readonly receivedBytes: number; readonly sentBytes: number; readonly connections: number };
  readonly outcomes: Readonly<Record<string, number>>;
};

export type ProxyView = {
  readonly workers: number;
  readonly connections: number;
  readonly services: readonly ServiceView[];
};

const PROXY_FILE = fileURLToPath(new URL('../../../packages/proxy/src/supervisor/supervisor.ts', import.meta.url));
const PROXY_PROTOTYPE_EXPRESSION = `process.getBuiltinModule('node:module').createRequire(${JSON.stringify(PROXY_FILE)})(${JSON.stringify(PROXY_FILE)}).Supervisor.prototype`;

/**
 * Returns a function that reads the view of the proxy in `weir standalone`. The inspector finds the `Supervisor` object in the heap,
 * because `weir standalone` does not serve the debug pages of the proxy.
 */
export async function findProxyView(inspector: Inspector): Promise<() => Promise<ProxyView>> {
  const { result: prototype } = await inspector.call('Runtime.evaluate', { expression: PROXY_PROTOTYPE_EXPRESSION });
  const { objects } = await inspector.call('Runtime.queryObjects', { prototypeObjectId: prototype?.objectId });
  const { result: proxy } = await inspector.call('Runtime.callFunctionOn', {
    objectId: objects?.objectId,
    functionDeclaration: 'function () { return this[0]; }',
  });
  if (proxy?.objectId === undefined) throw new Error('the process has no Supervisor object');
  return async () => {
    const { result: view } = await inspector.call('Runtime.callFunctionOn', {
      objectId: proxy.objectId,
      functionDeclaration: 'function () { return this.view(); }',
      returnByValue: true,
    });
    return view?.value as ProxyView;
  };
}
