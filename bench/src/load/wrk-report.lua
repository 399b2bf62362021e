-- Prints the results of wrk as one line of JSON, because wrk's own output rounds the bytes and omits the size of a request.
local threads = {}

function setup(thread)
  table.insert(threads, thread)
end

function init(args)
  requestBytes = #wrk.format()
end

function done(summary, latency, requests)
  local errors = summary.errors
  print(string.format(
    'report {"requests":%d,"bytes":%d,"microseconds":%d,"requestBytes":%d,"errors":{"connect":%d,"read":%d,"write":%d,"status":%d,"timeout":%d}}',
    summary.requests, summary.bytes, summary.duration, threads[1]:get("requestBytes"),
    errors.connect, errors.read, errors.write, errors.status, errors.timeout))
end
