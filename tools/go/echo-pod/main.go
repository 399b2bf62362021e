// Command echo-pod is the container of pods in tests.
//
//	echo-pod PORT   TCP: sends its host name, then echoes; UDP: answers each datagram with its host name
//	echo-pod http   answers each request at port 80 with its host name
//	echo-pod pause  does nothing and keeps the namespaces of a pod alive
//
// After SIGTERM it stops listening at once, as most servers do, and exits when its connections have ended.
package main

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/signal"
	"sync"
	"syscall"
)

// Increase the version with each change, here and in ../../src/programs/catalog.ts: the cache is keyed by this version.
const version = "1.1.1"

func main() {
	if len(os.Args) != 2 {
		fail(fmt.Errorf("usage: echo-pod PORT|http|pause|--version"))
	}
	end := make(chan os.Signal, 1)
	signal.Notify(end, syscall.SIGTERM, syscall.SIGINT)
	switch os.Args[1] {
	case "--version":
		fmt.Println("echo-pod", version)
	case "http":
		go func() { fail(http.ListenAndServe(":80", http.HandlerFunc(tell))) }()
		<-end
	case "pause":
		<-end
	default:
		serve(os.Args[1], end)
	}
}

func tell(answer http.ResponseWriter, _ *http.Request) {
	name, err := os.Hostname()
	fail(err)
	fmt.Fprintln(answer, "Hostname:", name)
}

func serve(port string, end <-chan os.Signal) {
	name, err := os.Hostname()
	fail(err)
	streams, err := net.Listen("tcp", ":"+port)
	fail(err)
	datagrams, err := net.ListenPacket("udp", ":"+port)
	fail(err)
	// Counts accept as well. Otherwise Wait could return between the Accept and the Add of the last connection.
	var open sync.WaitGroup
	open.Add(1)
	go answer(datagrams, name)
	go accept(streams, name, &open)
	fmt.Println(name, "listens on", port)
	<-end
	streams.Close()
	datagrams.Close()
	open.Wait()
}

func accept(streams net.Listener, name string, open *sync.WaitGroup) {
	defer open.Done()
	for {
		connection, err := streams.Accept()
		if err != nil {
			return
		}
		open.Add(1)
		go func() {
			defer open.Done()
			defer connection.Close()
			fmt.Fprintln(connection, name)
			io.Copy(connection, connection)
		}()
	}
}

func answer(datagrams net.PacketConn, name string) {
	buffer := make([]byte, 65536)
	for {
		size, from, err := datagrams.ReadFrom(buffer)
		if err != nil {
			return
		}
		datagrams.WriteTo(append([]byte(name+" "), buffer[:size]...), from)
	}
}

func fail(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, "echo-pod:", err)
		os.Exit(1)
	}
}
