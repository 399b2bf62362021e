import { NET_WORKER } from '../fixtures/net-worker.ts';
import { outcomeTests } from './outcomes-suite.ts';

outcomeTests(NET_WORKER);
