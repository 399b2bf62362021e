import { netTransport } from '../../src/tcp/net-transport.ts';
import { transportContract } from './transport-contract.ts';

transportContract('net', netTransport);
