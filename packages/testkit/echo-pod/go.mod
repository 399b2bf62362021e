module weir.dev/testkit/echo-pod

go 1.26
