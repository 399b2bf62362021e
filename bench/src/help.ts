export const help = `npm run bench -- l4 [options]

CPU that a TCP proxy spends: per request over kept connections, per connection, per GB of one stream.
Weir and its peers take turns under the same load, on loopback only. Prints a table (Markdown); a run that may count
(Weir and HAProxy, 10 pairs or more, nothing went wrong) is written to bench/results/<date>-<commit>.json.

  --pairs N        how often each takes its turn in each scenario (default 10, at most 100)
  --seconds S      how long a turn is (default 2, at most 30)
  --subjects LIST  who takes part: weir, haproxy, pipe (Node's socket.pipe()); default weir,haproxy
  --profile DIR    Weir writes a CPU profile of each of its threads there (open in a browser's developer tools)
  -h, --help       this text

Takes about pairs × seconds × subjects × 3 seconds. haproxy, nginx and wrk are fetched into WEIR_CACHE when missing.
Exit codes: 0 measured, 1 a run was not valid or could not be made, 2 wrong arguments.`;
