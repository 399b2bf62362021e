// The DNS server of the clusters that the tests run: CoreDNS with the plugins that a cluster needs, and without those of clouds, which
// are most of what it is built of.
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
