// The DNS server of test clusters: CoreDNS with the plugins that a cluster needs, without the cloud plugins, which need most of
// CoreDNS's dependencies.
package main

import (
	_ "github.com/coredns/coredns/plugin/errors"
	_ "github.com/coredns/coredns/plugin/kubernetes"
	_ "github.com/coredns/coredns/plugin/ready"

	"github.com/coredns/coredns/coremain"
)

func main() {
	coremain.Run()
}
