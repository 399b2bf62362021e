import { NET_WORKER } from '../fixtures/net-worker.ts';
import { outcomeTests } from './outcomes-tests.ts';

outcomeTests(NET_WORKER);
