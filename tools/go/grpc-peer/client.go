package main

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"strconv"
	"sync"
	"time"

	"golang.org/x/net/http2"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/wrapperspb"
)

// A case ends with an error if it takes longer.
const maxDuration = 60 * time.Second

const megabyte = 1 << 20

type client struct {
	target string
	tls    *tls.Config
	*grpc.ClientConn
}

var cases = map[string]func(context.Context, client) error{
	"unary":         unaryCalls,
	"metadata":      metadataBothWays,
	"bidirectional": bidirectional,
	"streams":       oneWayStreams,
	"deadline":      deadlines,
	"status":        statusDetails,
	"large":         largeMessages,
	"ping":          pings,
	"cancel":        cancelled,
	"goaway":        connectionsEnd,
}

// run runs a case. Over TLS if caFile is not empty.
func run(target, name, caFile, serverName string) error {
	test, ok := cases[name]
	if !ok {
		return fmt.Errorf("unknown case %q", name)
	}
	ctx, cancel := context.WithTimeout(context.Background(), maxDuration)
	defer cancel()
	credential := insecure.NewCredentials()
	var config *tls.Config
	if caFile != "" {
		pem, err := os.ReadFile(caFile)
		if err != nil {
			return err
		}
		roots := x509.NewCertPool()
		roots.AppendCertsFromPEM(pem)
		config = &tls.Config{RootCAs: roots, ServerName: serverName, NextProtos: []string{"h2"}}
		credential = credentials.NewTLS(config)
	}
	connection, err := grpc.NewClient("passthrough:///"+target, grpc.WithTransportCredentials(credential), grpc.WithDisableRetry())
	if err != nil {
		return err
	}
	defer connection.Close()
	return test(ctx, client{target, config, connection})
}

func (peer client) call(ctx context.Context, method string, value []byte, options ...grpc.CallOption) ([]byte, error) {
	response := new(message)
	err := peer.Invoke(ctx, servicePath+method, wrapperspb.Bytes(value), response, options...)
	return response.Value, err
}

func (peer client) stream(ctx context.Context, method string) (grpc.ClientStream, error) {
	return peer.NewStream(ctx, &grpc.StreamDesc{ClientStreams: true, ServerStreams: true}, servicePath+method)
}

// unaryCalls makes more calls at once than the proxy allows streams.
func unaryCalls(ctx context.Context, peer client) error {
	var group sync.WaitGroup
	errs := make([]error, 300)
	for index := range errs {
		group.Go(func() {
			sent := []byte(fmt.Sprint("call ", index))
			errs[index] = expectEcho(ctx, peer, sent)
		})
	}
	group.Wait()
	return errors.Join(errs...)
}

func expectEcho(ctx context.Context, peer client, sent []byte) error {
	received, err := peer.call(ctx, "Echo", sent)
	if err == nil && !bytes.Equal(received, sent) {
		return fmt.Errorf("received %d other bytes than the %d sent ones", len(received), len(sent))
	}
	return err
}

func metadataBothWays(ctx context.Context, peer client) error {
	value := string([]byte{0, 1, 254, 255, ','})
	var header, trailer metadata.MD
	ctx = metadata.AppendToOutgoingContext(ctx, "x-value-bin", value)
	if _, err := peer.call(ctx, "Echo", nil, grpc.Header(&header), grpc.Trailer(&trailer)); err != nil {
		return err
	}
	return errors.Join(
		expect("header", header.Get("x-header-bin"), []string{value}),
		expect("trailer", trailer.Get("x-trailer-bin"), []string{value}),
	)
}

// bidirectional sends a message only after the answer to the last one, so nothing may be kept back.
func bidirectional(ctx context.Context, peer client) error {
	stream, err := peer.stream(ctx, "Chat")
	if err != nil {
		return err
	}
	for index := range 200 {
		sent, received := text(fmt.Sprint("message ", index)), new(message)
		if err := stream.SendMsg(sent); err != nil {
			return err
		}
		if err := stream.RecvMsg(received); err != nil {
			return err
		}
		if err := expect("message", string(received.Value), string(sent.Value)); err != nil {
			return err
		}
	}
	if err := stream.CloseSend(); err != nil {
		return err
	}
	return expect("end", stream.RecvMsg(new(message)), io.EOF)
}

// oneWayStreams sends and receives 2,000 messages of 2,000 bytes, more than all windows.
func oneWayStreams(ctx context.Context, peer client) error {
	const length = 2000
	up, err := peer.stream(ctx, "Sum")
	if err != nil {
		return err
	}
	value := wrapperspb.Bytes(make([]byte, length))
	for range length {
		if err := up.SendMsg(value); err != nil {
			return err
		}
	}
	total := new(message)
	if err := errors.Join(up.CloseSend(), up.RecvMsg(total)); err != nil {
		return err
	}
	if err := expect("sum", string(total.Value), strconv.Itoa(length*length)); err != nil {
		return err
	}
	down, err := peer.stream(ctx, "Count")
	if err != nil {
		return err
	}
	if err := errors.Join(down.SendMsg(value), down.CloseSend()); err != nil {
		return err
	}
	received := 0
	for {
		next := new(message)
		if err := down.RecvMsg(next); errors.Is(err, io.EOF) {
			return expect("received bytes", received, length*length)
		} else if err != nil {
			return err
		}
		received += len(next.Value)
	}
}

// deadlines verifies that the server learns the deadline, and that a deadline ends a call.
func deadlines(ctx context.Context, peer client) error {
	remaining, err := peer.call(ctx, "Deadline", nil)
	if err != nil {
		return err
	}
	if left, err := time.ParseDuration(string(remaining)); err != nil || left <= 0 || left > maxDuration {
		return fmt.Errorf("the server knows the deadline %q", remaining)
	}
	before, err := peer.waitEnds(ctx)
	if err != nil {
		return err
	}
	for timeout := 100 * time.Millisecond; ; timeout *= 2 {
		if begun, err := peer.waitFor(ctx, timeout); err != nil {
			return err
		} else if begun {
			return peer.untilWaitEnds(ctx, before)
		}
	}
}

// waitFor calls Wait with a deadline. It returns whether the call reached the server before the deadline.
func (peer client) waitFor(ctx context.Context, timeout time.Duration) (begun bool, err error) {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	stream, err := peer.stream(ctx, "Wait")
	for err == nil {
		if err = stream.RecvMsg(new(message)); err == nil {
			begun = true
		}
	}
	return begun, expect("code", status.Code(err), codes.DeadlineExceeded)
}

// cancelled verifies that the server learns of a cancelled call.
func cancelled(ctx context.Context, peer client) error {
	before, err := peer.waitEnds(ctx)
	if err != nil {
		return err
	}
	short, cancel := context.WithCancel(ctx)
	defer cancel()
	stream, err := peer.stream(short, "Wait")
	if err == nil {
		err = stream.CloseSend()
	}
	if err == nil {
		err = stream.RecvMsg(new(message))
	}
	if err != nil {
		return err
	}
	cancel()
	if err := expect("code", status.Code(stream.RecvMsg(new(message))), codes.Canceled); err != nil {
		return err
	}
	return peer.untilWaitEnds(ctx, before)
}

// waitEnds returns how many calls of Wait the server has seen end.
func (peer client) waitEnds(ctx context.Context) (int, error) {
	count, err := peer.call(ctx, "Cancelled", nil)
	if err != nil {
		return 0, err
	}
	return strconv.Atoi(string(count))
}

// untilWaitEnds returns when the server has seen the end of more calls of Wait than before.
func (peer client) untilWaitEnds(ctx context.Context, before int) error {
	for {
		if count, err := peer.waitEnds(ctx); err != nil || count > before {
			return err
		}
	}
}

func statusDetails(ctx context.Context, peer client) error {
	_, err := peer.call(ctx, "Fail", nil)
	failure := status.Convert(err)
	details := []string{}
	for _, detail := range failure.Details() {
		details = append(details, detail.(*wrapperspb.StringValue).Value)
	}
	return errors.Join(
		expect("code", failure.Code(), codes.FailedPrecondition),
		expect("message", failure.Message(), failMessage),
		expect("details", details, []string{failDetail}),
	)
}

func largeMessages(ctx context.Context, peer client) error {
	sent := make([]byte, megabyte)
	for index := range sent {
		sent[index] = byte(index * 31 >> 3)
	}
	return errors.Join(expectEcho(ctx, peer, sent), expectEcho(ctx, peer, sent))
}

// pings sends PING as keepalive does. The shortest interval of grpc-go is 10 seconds, so an HTTP/2 client sends them.
func pings(ctx context.Context, peer client) error {
	var raw net.Conn
	var err error
	if peer.tls == nil {
		raw, err = new(net.Dialer).DialContext(ctx, "tcp", peer.target)
	} else {
		raw, err = (&tls.Dialer{Config: peer.tls}).DialContext(ctx, "tcp", peer.target)
	}
	if err != nil {
		return err
	}
	defer raw.Close()
	connection, err := (&http2.Transport{}).NewClientConn(raw)
	if err != nil {
		return err
	}
	for range 50 {
		if err := connection.Ping(ctx); err != nil {
			return err
		}
	}
	return nil
}

// connectionsEnd calls until the server, which ends its connections after a short time, has seen five. No call fails.
func connectionsEnd(ctx context.Context, peer client) error {
	for {
		seen, err := peer.call(ctx, "Peers", nil)
		if err != nil {
			return err
		}
		if count, err := strconv.Atoi(string(seen)); err != nil || count >= 5 {
			return err
		}
	}
}

func expect(what string, actual, expected any) error {
	if fmt.Sprint(actual) == fmt.Sprint(expected) {
		return nil
	}
	return fmt.Errorf("%s: got %v, expected %v", what, actual, expected)
}
