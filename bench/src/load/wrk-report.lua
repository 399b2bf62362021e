-- Prints the results of wrk as one line of JSON, because wrk's own output rounds the bytes and omits the size of a request.
-- Arguments: `body=BYTES` sends POST requests with a body of this size. Each other argument is a target, HOST/PATH, that is
-- requested in turn instead of the URL. All targets must have the same length, because the report has one size for all requests.
local threads = {}

function setup(thread)
  table.insert(threads, thread)
end

function init(args)
  local targets = {}
  for _, argument in ipairs(args) do
    local bytes = argument:match('^body=(%d+)$')
    if bytes then
      wrk.method = 'POST'
      wrk.body = string.rep('b', tonumber(bytes))
    else
      table.insert(targets, argument)
    end
  end
  if #targets > 0 then requestInTurn(targets) end
  requestBytes = #(request and request() or wrk.format())
end

function requestInTurn(targets)
  local requests = {}
  for _, target in ipairs(targets) do
    local host, path = target:match('^([^/]+)(/.*)$')
    wrk.headers['Host'] = host
    table.insert(requests, wrk.format(nil, path))
  end
  local last = 0
  function request()
    last = last % #requests + 1
    return requests[last]
  end
end

function done(summary, latency, requests)
  local errors = summary.errors
  print(string.format(
    'report {"requests":%d,"bytes":%d,"microseconds":%d,"requestBytes":%d,"errors":{"connect":%d,"read":%d,"write":%d,"status":%d,"timeout":%d}}',
    summary.requests, summary.bytes, summary.duration, threads[1]:get("requestBytes"),
    errors.connect, errors.read, errors.write, errors.status, errors.timeout))
end
