module github.com/droverhq/drover/bench

go 1.26.8

require (
	github.com/droverhq/drover v0.0.0
	github.com/nats-io/nats.go v1.55.0
	golang.org/x/sys v0.50.0
)

require (
	github.com/klauspost/compress v1.20.4 // indirect
	github.com/nats-io/nkeys v0.4.17 // indirect
	github.com/nats-io/nuid v1.0.1 // indirect
	github.com/oklog/ulid/v2 v2.1.2 // indirect
	github.com/sirupsen/logrus v1.10.2 // indirect
	github.com/vmihailenco/msgpack/v5 v5.4.1 // indirect
	github.com/vmihailenco/tagparser/v2 v2.0.0 // indirect
	golang.org/x/crypto v0.58.0 // indirect
)

replace github.com/droverhq/drover => ../
