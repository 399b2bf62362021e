import { bareUdpTransport } from '../../src/udp/bare-udp-transport.ts';
import { udpTransportContract } from './transport-contract.ts';

udpTransportContract('bare handles', bareUdpTransport);
