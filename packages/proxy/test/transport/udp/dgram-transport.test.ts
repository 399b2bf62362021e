import { dgramTransport } from '../../../src/transport/udp/dgram-transport.ts';
import { udpTransportContract } from './transport-contract.ts';

udpTransportContract('public dgram', dgramTransport);
