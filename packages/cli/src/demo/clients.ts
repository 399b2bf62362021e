import type { ServiceView } from '@weir/model';
import { startGameTraffic } from './game-traffic.ts';
import { startShopTraffic } from './shop-traffic.ts';
import type { Traffic } from './traffic.ts';
import { startUploadTraffic, type UploadTraffic } from './upload-traffic.ts';

/** The clients of all tenants. */
export interface DemoClients {
  readonly shop: Traffic;
  readonly game: Traffic;
  readonly uploader: UploadTraffic;
  stop(): Promise<void>;
}

/** They go to the addresses that the Services were given, as DNS would send them. */
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
