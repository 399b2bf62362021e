import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { spawnProcess, temporaryDirectory } from '@weir/testkit';
import { programPath } from '@weir/tools';
import type { Subject } from '../../subjects/subject.ts';
import type { L7Listener } from '../listeners.ts';
import { ROUTES, ROUTES_BY_HOST } from '../routes.ts';
import type { ConfigurationInput } from './haproxy-http.ts';
import { freeL7Ports, type L7SubjectInput } from './subject-input.ts';

/** Starts nginx in one process without a master, so that the CPU time of the process is all of nginx's. */
export async function startNginxHttp({ certificate, ...backends }: L7SubjectInput): Promise<Subject<L7Listener>> {
  await using cleanup = new AsyncDisposableStack();
  const directory = cleanup.use(temporaryDirectory('bench-nginx-http')).path;
  const ports = await freeL7Ports();
  writeFileSync(join(directory, 'certificate.pem'), certificate.chain);
  writeFileSync(join(directory, 'key.pem'), certificate.key);
  const configuration = join(directory, 'nginx.conf');
  writeFileSync(configuration, nginxHttpConfiguration({ directory, ports, ...backends }));
  const args = ['-p', directory, '-e', 'stderr', '-c', configuration];
  const nginx = cleanup.use(
    await spawnProcess({ command: programPath('nginx'), args, name: 'nginx proxy', mayExit: true }),
  );
  const started = cleanup.move();
  return {
    name: 'nginx',
    description:
      'nginx proxy_pass, 1 process, keepalive 256, no temporary files; routes: a server per host, a location and an upstream per path prefix',
    pid: nginx.pid,
    output: nginx.output,
    ports,
    [Symbol.asyncDispose]: () => started.disposeAsync(),
  };
}

const FOLDERS = ['client_body', 'proxy', 'fastcgi', 'uwsgi', 'scgi'];

/** Returns a configuration that writes the same fields as Weir, except traceparent. */
export function nginxHttpConfiguration(input: ConfigurationInput): string {
  const { directory, ports, backendPort, grpcBackendPort } = input;
  const routes = [...ROUTES_BY_HOST].map(
    ([host, prefixes]) => `  server {
    listen 127.0.0.1:${ports.routes};
    server_name ${host};
${prefixes.map(({ backend, pathPrefix }) => `    location ${pathPrefix}/ { proxy_pass http://${backend}; }`).join('\n')}
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
  upstream endpoints { ${upstream(backendPort)} }
  upstream calls { ${upstream(grpcBackendPort)} }
${ROUTES.map(({ backend }) => `  upstream ${backend} { ${upstream(backendPort)} }`).join('\n')}
  proxy_http_version 1.1;
  proxy_max_temp_file_size 0;
  proxy_set_header Connection "";
${forwardedFields('proxy_set_header')}
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
  server {
    listen 127.0.0.1:${ports.grpc} http2 reuseport backlog=4096;
${forwardedFields('grpc_set_header')}
    location / { grpc_pass grpc://calls; }
  }
${routes.join('\n')}
}
`;
}

function upstream(port: number): string {
  return `server 127.0.0.1:${port}; keepalive 256; keepalive_requests 100000000; keepalive_timeout 60s;`;
}

function forwardedFields(directive: 'proxy_set_header' | 'grpc_set_header'): string {
  const fields = [
    'Host $http_host',
    'X-Forwarded-For $proxy_add_x_forwarded_for',
    'X-Forwarded-Proto $scheme',
    'X-Forwarded-Host $http_host',
    'X-Forwarded-Port $server_port',
    'X-Request-Id $request_id',
    'Via "1.1 nginx"',
  ];
  return fields.map((field) => `  ${directive} ${field};`).join('\n');
}
