import { netTransport } from '../../../src/transport/tcp/net-transport.ts';
import { transportContract } from './transport-contract.ts';

transportContract('net', netTransport);
