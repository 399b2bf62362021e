package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"sync"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/health"
	"google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/keepalive"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/peer"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/wrapperspb"
)

// The full names of the methods begin with servicePath. All messages are google.protobuf.BytesValue.
const (
	serviceName = "weir.test.Peer"
	servicePath = "/" + serviceName + "/"
)

// message is the type of all requests and responses.
type message = wrapperspb.BytesValue

// state is what the server remembers for the client's questions.
type state struct {
	mutex     sync.Mutex
	cancelled int
	peers     map[string]bool
}

// serve prints the port, and serves until the process ends. Connections older than maxAge end by GOAWAY; 0 means never.
func serve(maxAge time.Duration) error {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	server := grpc.NewServer(grpc.KeepaliveParams(keepalive.ServerParameters{MaxConnectionAge: maxAge}))
	server.RegisterService(&description, &state{peers: map[string]bool{}})
	grpc_health_v1.RegisterHealthServer(server, health.NewServer())
	fmt.Printf("ready %d\n", listener.Addr().(*net.TCPAddr).Port)
	return server.Serve(listener)
}

var description = grpc.ServiceDesc{
	ServiceName: serviceName,
	HandlerType: (*any)(nil),
	Methods: []grpc.MethodDesc{
		unary("Echo", echo),
		unary("Fail", fail),
		unary("Deadline", deadline),
		unary("Cancelled", func(_ context.Context, server *state, _ *message) (*message, error) {
			server.mutex.Lock()
			defer server.mutex.Unlock()
			return text(fmt.Sprint(server.cancelled)), nil
		}),
		unary("Peers", func(ctx context.Context, server *state, _ *message) (*message, error) {
			from, _ := peer.FromContext(ctx)
			server.mutex.Lock()
			defer server.mutex.Unlock()
			server.peers[from.Addr.String()] = true
			return text(fmt.Sprint(len(server.peers))), nil
		}),
	},
	Streams: []grpc.StreamDesc{
		{StreamName: "Chat", Handler: chat, ServerStreams: true, ClientStreams: true},
		{StreamName: "Count", Handler: count, ServerStreams: true},
		{StreamName: "Sum", Handler: sum, ClientStreams: true},
		{StreamName: "Wait", Handler: wait, ServerStreams: true},
	},
}

func unary(name string, handle func(context.Context, *state, *message) (*message, error)) grpc.MethodDesc {
	return grpc.MethodDesc{
		MethodName: name,
		Handler: func(server any, ctx context.Context, decode func(any) error, _ grpc.UnaryServerInterceptor) (any, error) {
			request := new(message)
			if err := decode(request); err != nil {
				return nil, err
			}
			return handle(ctx, server.(*state), request)
		},
	}
}

// echo returns the message, and the client's metadata x-value-bin as header and as trailer.
func echo(ctx context.Context, _ *state, request *message) (*message, error) {
	incoming, _ := metadata.FromIncomingContext(ctx)
	for _, value := range incoming.Get("x-value-bin") {
		grpc.SetHeader(ctx, metadata.Pairs("x-header-bin", value))
		grpc.SetTrailer(ctx, metadata.Pairs("x-trailer-bin", value))
	}
	return request, nil
}

// fail returns an error with a message that is not ASCII, and a detail.
func fail(context.Context, *state, *message) (*message, error) {
	failure, err := status.New(codes.FailedPrecondition, failMessage).WithDetails(wrapperspb.String(failDetail))
	if err != nil {
		return nil, err
	}
	return nil, failure.Err()
}

const (
	failMessage = "100 % über\nzwei Zeilen"
	failDetail  = "a detail"
)

// deadline returns how long the client still waits.
func deadline(ctx context.Context, _ *state, _ *message) (*message, error) {
	at, ok := ctx.Deadline()
	if !ok {
		return nil, status.Error(codes.InvalidArgument, "the request has no deadline")
	}
	return text(time.Until(at).String()), nil
}

// chat sends each message back before it reads the next.
func chat(_ any, stream grpc.ServerStream) error {
	for {
		next := new(message)
		if err := stream.RecvMsg(next); err != nil {
			return unlessEnd(err)
		}
		if err := stream.SendMsg(next); err != nil {
			return err
		}
	}
}

// count sends the request's message as many times as it has bytes.
func count(_ any, stream grpc.ServerStream) error {
	request := new(message)
	if err := stream.RecvMsg(request); err != nil {
		return err
	}
	for range request.Value {
		if err := stream.SendMsg(request); err != nil {
			return err
		}
	}
	return nil
}

// sum returns the number of all bytes.
func sum(_ any, stream grpc.ServerStream) error {
	total := 0
	for {
		next := new(message)
		if err := stream.RecvMsg(next); errors.Is(err, io.EOF) {
			return stream.SendMsg(text(fmt.Sprint(total)))
		} else if err != nil {
			return err
		}
		total += len(next.Value)
	}
}

// wait sends one message, and then waits until the client ends the call.
func wait(server any, stream grpc.ServerStream) error {
	if err := stream.SendMsg(text("begun")); err != nil {
		return err
	}
	<-stream.Context().Done()
	remembered := server.(*state)
	remembered.mutex.Lock()
	defer remembered.mutex.Unlock()
	remembered.cancelled++
	return stream.Context().Err()
}

func text(value string) *message {
	return wrapperspb.Bytes([]byte(value))
}

func unlessEnd(err error) error {
	if errors.Is(err, io.EOF) {
		return nil
	}
	return err
}
