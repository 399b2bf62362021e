//go:build tools

// Package tools pins the h2spec of the tests by go.mod and go.sum.
package tools

import _ "github.com/summerwind/h2spec/cmd/h2spec"
