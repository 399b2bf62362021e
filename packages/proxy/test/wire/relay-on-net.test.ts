import { NET_WORKER } from '../fixtures/net-worker.ts';
import { relayTests } from './relay-tests.ts';

relayTests(NET_WORKER);
