/** What looking for a program ends in. `remedy` is the line that gets it, to be shown to a person as it stands. */
export type ProgramLookup =
  | { readonly kind: 'available'; readonly name: ProgramName; readonly path: string; readonly version: string }
  | { readonly kind: 'missing'; readonly name: ProgramName; readonly reason: string; readonly remedy: string };

export type ProgramName =
  | 'redis-server'
  | 'etcd'
  | 'haproxy'
  | 'nginx'
  | 'nginx-stream'
  | 'envoy'
  | 'wrk'
  | 'chromium'
  | 'ip'
  | 'nft'
  | 'runc'
  | 'kube-apiserver'
  | 'kube-controller-manager'
  | 'kubectl'
  | 'kube-scheduler'
  | 'kubelet'
  | 'kube-proxy'
  | 'containerd'
  | 'containerd-shim-runc-v2'
  | 'ctr'
  | 'host-local'
  | 'echo-pod'
  | 'coredns'
  | 'helm'
  | 'debootstrap'
  | 'buildah'
  | 'weir-images';
