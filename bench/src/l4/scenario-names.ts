/** In the order in which they run, and what each measures. */
export const L4_SCENARIO_DESCRIPTIONS = {
  requests: 'CPU per request over kept connections',
  connections: 'CPU per connection of one request',
  stream: 'CPU per GB of one stream',
  udp: 'CPU per UDP round trip, 64 flows (without HAProxy, which has no UDP)',
  latency: 'latency at a fixed rate, half of the highest that HAProxy holds',
  limits: 'what limits cost: Weir with limits that do not act beside Weir without, in the first three',
  workers: 'CPU per request and connection with two workers beside one',
  memory: 'memory per idle connection, up to 10,000 of them',
} as const;

export type L4ScenarioName = keyof typeof L4_SCENARIO_DESCRIPTIONS;

export const L4_SCENARIO_NAMES: readonly L4ScenarioName[] = Object.keys(L4_SCENARIO_DESCRIPTIONS) as L4ScenarioName[];

export function isL4ScenarioName(name: string): name is L4ScenarioName {
  return Object.hasOwn(L4_SCENARIO_DESCRIPTIONS, name);
}
