import { relayTests } from './relay-tests.ts';

relayTests();
