// A tenant with a UDP Service, to which an attacker sends datagrams with forged client addresses. Each datagram opens a flow, which costs
// the proxy a socket, and no flow has a second datagram.
import { freePort } from '@weir/testkit';
import type { FlowFlood } from '../load/flow-flood-process.ts';
import { RpcProcess } from '../processes/rpc.ts';
import { serviceManifest } from '../subjects/weir-manifests.ts';
import type { Attacker } from './scenarios.ts';

export async function startFlowFlood({ flowsPerSecond }: { readonly flowsPerSecond: number }): Promise<Attacker> {
  const port = await freePort();
  const program = new URL('../load/flow-flood-process.ts', import.meta.url);
  const flood = new RpcProcess<FlowFlood>(program, []);
  const target = await flood.call('openEndpoint');
  return {
    manifests: serviceManifest(
      { name: 'game', namespace: 'hostile', protocol: 'UDP', port },
      { target, addresses: ['127.0.0.1'] },
    ),
    arm: async () => undefined,
    async attack(seconds) {
      const { sent, arrived } = await flood.call('run', port, flowsPerSecond, seconds);
      return `${arrived} of ${sent} new flows opened`;
    },
    disarm: async () => undefined,
    [Symbol.asyncDispose]: () => flood[Symbol.asyncDispose](),
  };
}
