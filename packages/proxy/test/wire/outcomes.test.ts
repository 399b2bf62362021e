import { outcomeTests } from './outcomes-tests.ts';

outcomeTests();
