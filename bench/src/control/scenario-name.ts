/** What the controller is given to do, in the order in which it is done. */
export const CONTROL_SCENARIO_DESCRIPTIONS = {
  start: 'from nothing in Redis to the whole table, and a follower that reads it',
  endpoint: 'one endpoint of one Service is ready, or is not any more',
  service: 'one Service gets another algorithm',
  rollout: 'all ten pods of one Service are replaced, one after the other: 20 changes as fast as they are published',
  tenants: 'one endpoint of one Service of each of 100 tenants (all, where there are fewer), at the same moment',
} as const;

export type ControlScenario = keyof typeof CONTROL_SCENARIO_DESCRIPTIONS;
/** Those that change what has started. */
export type ChangeScenario = Exclude<ControlScenario, 'start'>;

export const CONTROL_SCENARIOS: readonly ControlScenario[] = Object.keys(
  CONTROL_SCENARIO_DESCRIPTIONS,
) as ControlScenario[];
