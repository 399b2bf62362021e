import type { ServiceView } from '@weir/model';
import { startShopTraffic } from './shop-traffic.ts';
import { startGameTraffic, startUploadTraffic, type Traffic, type UploadTraffic } from './traffic.ts';

export interface DemoClients {
  readonly shop: Traffic;
  readonly game: Traffic;
  readonly uploader: UploadTraffic;
  stop(): Promise<void>;
}

/** Starts the clients of all tenants. They connect to the addresses of the tenants' Services. */
export function startDemoClients(services: readonly ServiceView[]): DemoClients {
  const targetOf = (namespace: string, port: number) => {
    const service = services.find((each) => each.namespace === namespace && each.addresses.length > 0);
    return { addresses: service?.addresses ?? [], port };
  };
  const shop = startShopTraffic(targetOf('shop', 18_080));
  const game = startGameTraffic(targetOf('game', 17_777));
  const uploader = startUploadTraffic(targetOf('uploader', 19_000));
  return {
    shop,
    game,
    uploader,
    async stop() {
      await Promise.all([shop.stop(), game.stop(), uploader.stop()]);
    },
  };
}
