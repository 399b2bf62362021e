/** In the order in which they run, and what each measures. */
export const scenarioTexts = {
  requests: 'CPU per request over kept connections',
  connections: 'CPU per connection of one request',
  stream: 'CPU per GB of one stream',
  udp: 'CPU per UDP round trip, 64 flows (without HAProxy, which has no UDP)',
  latency: 'latency at a fixed rate, half of the highest that HAProxy holds',
  limits: 'what limits cost: Weir with limits that do not act beside Weir without, in the first three',
  workers: 'CPU per request and connection with two workers beside one',
  memory: 'memory per idle connection, up to 10,000 of them',
} as const;

export type ScenarioName = keyof typeof scenarioTexts;

export const scenarioNames: readonly ScenarioName[] = Object.keys(scenarioTexts) as ScenarioName[];

export function isScenarioName(name: string): name is ScenarioName {
  return Object.hasOwn(scenarioTexts, name);
}
