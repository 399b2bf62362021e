import { outcomeTests } from './outcomes-suite.ts';

outcomeTests();
