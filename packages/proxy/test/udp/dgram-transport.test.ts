import { dgramTransport } from '../../src/udp/dgram-transport.ts';
import { udpTransportContract } from './transport-contract.ts';

udpTransportContract('public dgram', dgramTransport);
