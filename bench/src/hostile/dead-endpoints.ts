// A tenant whose endpoints all refuse connections, as after a failed rollout. Each client makes the proxy try several endpoints.
import { freePort } from '@weir/testkit';
import { runGenerator } from '../load/generators.ts';
import { serviceManifest } from '../subjects/weir-manifests.ts';
import type { Attacker } from './scenarios.ts';

export type DeadEndpointsOptions = { readonly endpoints: number; readonly clientsPerSecond: number };
type ClientReport = { readonly started: number; readonly refused: number };

export async function startDeadEndpoints({ endpoints, clientsPerSecond }: DeadEndpointsOptions): Promise<Attacker> {
  const port = await freePort();
  const target = await freePort();
  const addresses = Array.from({ length: endpoints }, (_, index) => `127.9.${index >> 8}.${index & 255}`);
  const program = new URL('../load/connect-flood-process.ts', import.meta.url);
  return {
    manifests: serviceManifest({ name: 'web', namespace: 'hostile', protocol: 'TCP', port }, { target, addresses }),
    arm: async () => {},
    async attack(seconds) {
      const { started, refused } = await runGenerator<ClientReport>(program, [port, seconds, clientsPerSecond]);
      return `${refused} of ${started} clients refused`;
    },
    disarm: async () => {},
    [Symbol.asyncDispose]: async () => {},
  };
}
