import { rawUdpTransport } from '../../src/udp/bare-udp-transport.ts';
import { udpTransportContract } from './transport-contract.ts';

udpTransportContract('bare handles', rawUdpTransport);
