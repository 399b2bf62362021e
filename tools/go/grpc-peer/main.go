// Command grpc-peer is a gRPC server and a gRPC client for tests of a proxy between the two.
//
//	grpc-peer server [MAX-AGE]                     listens at a free port of 127.0.0.1 and prints "ready PORT"
//	grpc-peer client TARGET CASE [CA SERVER-NAME]  runs a case of client.go, over TLS if CA names a file with certificates
//
// The client exits with 1 and prints the difference if a call does not end as it should.
package main

import (
	"fmt"
	"os"
	"time"
)

// Increase the version with each change, also of go.mod, here and in ../../src/programs/catalog.ts: the cache is keyed by this version.
const version = "1.0.0"

func main() {
	if err := start(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func start(arguments []string) error {
	words := append(arguments, make([]string, 5)...)
	switch {
	case len(arguments) == 1 && words[0] == "--version":
		fmt.Println("grpc-peer", version)
		return nil
	case len(arguments) == 1 && words[0] == "server":
		return serve(0)
	case len(arguments) == 2 && words[0] == "server":
		maxAge, err := time.ParseDuration(words[1])
		if err != nil {
			return err
		}
		return serve(maxAge)
	case (len(arguments) == 3 || len(arguments) == 5) && words[0] == "client":
		return run(words[1], words[2], words[3], words[4])
	default:
		return fmt.Errorf("usage: grpc-peer server [MAX-AGE] | client TARGET CASE [CA SERVER-NAME] | --version")
	}
}
