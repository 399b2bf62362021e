import { TLS_TRANSPORTS } from '../../fixtures/transports.ts';
import { streamContract } from '../tcp/stream-contract.ts';
import { tlsTransport } from './tls-transport.ts';

for (const { name, transport } of TLS_TRANSPORTS) streamContract(tlsTransport(name, transport));
