module weir.dev/tools/echo-pod

go 1.26
