import { fileURLToPath } from 'node:url';
import type { Inspector } from './inspector.ts';

/** What the proxy counts of a Service (`/debug/listeners` of a proxy by itself). */
export type ServiceCount = {
  readonly name: string;
  readonly active: number;
  readonly counters: { readonly receivedBytes: number; readonly sentBytes: number; readonly connections: number };
  readonly outcomes: Readonly<Record<string, number>>;
};

export type SelfView = {
  readonly workers: number;
  readonly connections: number;
  readonly services: readonly ServiceCount[];
};

const file = fileURLToPath(new URL('../../../packages/proxy/src/node-proxy.ts', import.meta.url));
const prototype = `process.getBuiltinModule('node:module').createRequire(${JSON.stringify(file)})(${JSON.stringify(file)}).NodeProxy.prototype`;

/** Standalone has no page for it, so the one proxy in its memory is asked. */
export async function findProxy(inspector: Inspector): Promise<() => Promise<SelfView>> {
  const { result: made } = await inspector.call('Runtime.evaluate', { expression: prototype });
  const { objects } = await inspector.call('Runtime.queryObjects', { prototypeObjectId: made?.objectId });
  const { result: proxy } = await inspector.call('Runtime.callFunctionOn', {
    objectId: objects?.objectId,
    functionDeclaration: 'function () { return this[0]; }',
  });
  if (proxy?.objectId === undefined) throw new Error('no proxy was found in the process');
  return async () => {
    const { result: view } = await inspector.call('Runtime.callFunctionOn', {
      objectId: proxy.objectId,
      functionDeclaration: 'function () { return this.view(); }',
      returnByValue: true,
    });
    return view?.value as SelfView;
  };
}
