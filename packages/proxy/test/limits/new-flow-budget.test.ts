import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { NewFlowBudget } from '../../src/limits/new-flow-budget.ts';

describe('NewFlowBudget', () => {
  test('admits 4,000 new flows of one tenant a second, and 100 after a pause', () => {
    const { admittedAtOnce, admittedInOneSecond } = createBudget();
    assert.equal(admittedAtOnce('game'), 100);
    assert.equal(admittedInOneSecond('game'), 4_000);
  });

  test('gives each tenant a budget of its own', () => {
    const { admittedAtOnce } = createBudget();
    assert.deepEqual([admittedAtOnce('game'), admittedAtOnce('shop')], [100, 100]);
  });

  test('gets smaller in proportion while the event loop is late, and then gets its size back', () => {
    const { admittedInOneSecond, takeTurns } = createBudget();
    takeTurns({ ms: 10 });
    assert.equal(admittedInOneSecond('game'), 2_000);
    takeTurns({ ms: 4 });
    assert.equal(admittedInOneSecond('game'), 4_000);
  });

  test('keeps a tenth of its size, however late the event loop is', () => {
    const { admittedInOneSecond, takeTurns } = createBudget();
    takeTurns({ ms: 1_000 });
    assert.equal(admittedInOneSecond('game'), 400);
  });

  test('a limit of new connections that is higher than the budget replaces the budget', () => {
    const { admittedInOneSecond } = createBudget();
    assert.deepEqual([admittedInOneSecond('dns', 16_000), admittedInOneSecond('game', 10)], [16_000, 4_000]);
  });

  test('forgets tenants whose budget is complete, and no others', () => {
    const { budget, admittedAtOnce } = createBudget();
    admittedAtOnce('game');
    budget.tick();
    assert.equal(admittedAtOnce('game'), 0);
  });
});

interface BudgetInTest {
  readonly budget: NewFlowBudget;
  admittedAtOnce(tenant: string): number;
  /** Returns how many of the new flows of one second are admitted, after a burst that uses up the budget. */
  admittedInOneSecond(tenant: string, limitPerSecond?: number): number;
  /** Lets many turns of the event loop pass that take `ms` each. */
  takeTurns(options: { readonly ms: number }): void;
}

/** Creates a budget whose clock advances only in the methods of this object. */
function createBudget(): BudgetInTest {
  let now = 1_000;
  let endTurn = (): void => undefined;
  const budget = new NewFlowBudget({
    now: () => now,
    atEndOfTurn: (act) => {
      endTurn = act;
    },
  });
  const attempt = (tenant: string, { flows = 8_192, ms = 0, limitPerSecond = Infinity } = {}): number => {
    let admitted = 0;
    for (let flow = 0; flow < flows; flow += 1) {
      now += ms / flows;
      if (budget.tryTake(tenant, limitPerSecond)) admitted += 1;
    }
    return admitted;
  };
  return {
    budget,
    admittedAtOnce: (tenant) => attempt(tenant),
    admittedInOneSecond(tenant, limitPerSecond = Infinity) {
      attempt(tenant, { limitPerSecond });
      return attempt(tenant, { flows: 32_000, ms: 1_000, limitPerSecond });
    },
    takeTurns({ ms }) {
      for (let turn = 0; turn < 400; turn += 1) {
        budget.tryTake('measured', Infinity);
        now += ms;
        endTurn();
      }
    },
  };
}
