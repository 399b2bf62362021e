import { NET_WORKER } from '../fixtures/net-worker.ts';
import { relayTests } from './relay-suite.ts';

relayTests(NET_WORKER);
