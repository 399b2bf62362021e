import { relayTests } from './relay-suite.ts';

relayTests();
