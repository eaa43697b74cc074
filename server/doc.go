// Package server is a whole server of Drover in the process of its caller: the command "drover
// server" is made of it, and so can any other program be.
//
//	s, err := server.New(server.Options{Embedded: embedded.Options{StoreDir: "data"}})
//	go s.Run(ctx)                // until ctx is done
//	info, err := s.Ready(ctx)    // requests are answered
//	client, err := drover.Connect(ctx, &drover.Options{URL: info.URL})
//
// A [Server] holds a NATS server of its own, or works beside one elsewhere ([Options].External),
// and runs roles: broker, timers, ops, flows. [Server.Run] returns when all of them have ended.
//
// Layout: a node (node.go) is a server at work. It serves its home and, unless told otherwise,
// every other namespace (tenants.go); each is a tenant (tenant.go), which wires the roles. The
// roles live from one recycle to the next (generation.go, recycling.go). register.go keeps the
// record of the node, control.go obeys operators, cluster.go waits for the other nodes of an
// embedded cluster, and storewatch.go ends a server whose store has broken.
//
// Invariants:
//   - A planned stop loses nothing: it is what the end of the context begins.
//   - What belongs to a process is its caller's: signals, exit codes, how much memory it keeps.
//   - The error of a role that ends by itself ends the server. The failure of a namespace other
//     than the home does not.
package server
