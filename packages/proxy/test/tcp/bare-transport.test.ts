import { bareTransport } from '../../src/tcp/bare-transport.ts';
import { transportContract } from './transport-contract.ts';

transportContract('bare', bareTransport);
