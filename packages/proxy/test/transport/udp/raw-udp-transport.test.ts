import { rawUdpTransport } from '../../../src/transport/udp/raw-udp-transport.ts';
import { udpTransportContract } from './transport-contract.ts';

udpTransportContract('bare handles', rawUdpTransport);
