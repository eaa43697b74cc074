// Package serve has the commands that run until they are stopped: server, dev and worker. They turn
// flags into the options of package server, or into workers of a client.
package serve
