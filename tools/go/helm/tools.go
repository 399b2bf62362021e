//go:build tools

// Package tools pins the helm of the tests by go.mod and go.sum. It is a separate module, because helm would otherwise influence
// the versions of Kubernetes' dependencies.
package tools

import _ "helm.sh/helm/v4/cmd/helm"
