//go:build tools

// Package tools holds the helm that the tests run, so that its version and checksums are pinned by go.mod and go.sum. It is a module
// of its own: in that of Kubernetes it would choose the versions of what Kubernetes is made of.
package tools

import _ "helm.sh/helm/v4/cmd/helm"
