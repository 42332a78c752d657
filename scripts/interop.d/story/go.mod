// The Go clients: each is one file beside this directory, all share adapter.go.
module story

go 1.24
