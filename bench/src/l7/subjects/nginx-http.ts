import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { spawnProcess, temporaryDirectory } from '@weir/testkit';
import { programPath } from '@weir/tools';
import type { Subject } from '../../subjects/subject.ts';
import type { L7Listener } from '../listeners.ts';
import { ROUTES_BY_HOST } from '../routes.ts';
import type { ConfigurationInput } from './haproxy-http.ts';
import { freeL7Ports, type L7SubjectInput } from './subject-input.ts';

/** Starts nginx in one process without a master, so that the CPU time of the process is all of nginx's. */
export async function startNginxHttp({ backendPort, certificate }: L7SubjectInput): Promise<Subject<L7Listener>> {
  await using cleanup = new AsyncDisposableStack();
  const directory = cleanup.use(temporaryDirectory('bench-nginx-http')).path;
  const ports = await freeL7Ports();
  writeFileSync(join(directory, 'certificate.pem'), certificate.chain);
  writeFileSync(join(directory, 'key.pem'), certificate.key);
  const configuration = join(directory, 'nginx.conf');
  writeFileSync(configuration, nginxHttpConfiguration({ directory, ports, backendPort }));
  const args = ['-p', directory, '-e', 'stderr', '-c', configuration];
  const nginx = cleanup.use(
    await spawnProcess({ command: programPath('nginx'), args, name: 'nginx proxy', mayExit: true }),
  );
  const started = cleanup.move();
  return {
    name: 'nginx',
    description:
      'nginx proxy_pass, 1 process, keepalive 256, no temporary files; routes: a server per host, a location per path prefix',
    pid: nginx.pid,
    output: nginx.output,
    ports,
    [Symbol.asyncDispose]: () => started.disposeAsync(),
  };
}

const FOLDERS = ['client_body', 'proxy', 'fastcgi', 'uwsgi', 'scgi'];

/** Returns a configuration that writes the same fields as Weir, except traceparent. */
export function nginxHttpConfiguration({ directory, ports, backendPort }: ConfigurationInput): string {
  const routes = [...ROUTES_BY_HOST].map(
    ([host, prefixes]) => `  server {
    listen 127.0.0.1:${ports.routes};
    server_name ${host};
${prefixes.map(({ pathPrefix }) => `    location ${pathPrefix}/ { proxy_pass http://endpoints; }`).join('\n')}
  }`,
  );
  return `
daemon off;
master_process off;
worker_processes 1;
pid ${directory}/nginx.pid;
error_log stderr crit;
events { worker_connections 4096; }
http {
  access_log off;
  ${FOLDERS.map((name) => `${name}_temp_path ${directory}/${name};`).join('\n  ')}
  keepalive_requests 100000000;
  keepalive_timeout 60s;
  server_names_hash_max_size 4096;
  upstream endpoints {
    server 127.0.0.1:${backendPort};
    keepalive 256;
    keepalive_requests 100000000;
    keepalive_timeout 60s;
  }
  proxy_http_version 1.1;
  proxy_max_temp_file_size 0;
  proxy_set_header Connection "";
  proxy_set_header Host $http_host;
  proxy_set_header X-Forwarded-For $proxy_add_x_forwarded_for;
  proxy_set_header X-Forwarded-Proto $scheme;
  proxy_set_header X-Forwarded-Host $http_host;
  proxy_set_header X-Forwarded-Port $server_port;
  proxy_set_header X-Request-Id $request_id;
  proxy_set_header Via "1.1 nginx";
  add_header Via "1.1 nginx";
  server { listen 127.0.0.1:${ports.http} reuseport backlog=4096; location / { proxy_pass http://endpoints; } }
  server {
    listen 127.0.0.1:${ports.https} ssl reuseport backlog=4096;
    ssl_protocols TLSv1.3;
    ssl_certificate certificate.pem;
    ssl_certificate_key key.pem;
    location / { proxy_pass http://endpoints; }
  }
  server { listen 127.0.0.1:${ports.http2} http2 reuseport backlog=4096; location / { proxy_pass http://endpoints; } }
${routes.join('\n')}
}
`;
}
