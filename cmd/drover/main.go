// Command drover is the one binary of Drover: the server with all its roles, and the commands of its clients.
//
// Layout: one file for each command; app.go holds what all of them share (global flags, connection, exit codes), and
// server.go turns flags into the options of package server, which assembles a server.
//
// What scripts may rely on: with --json one stable document on stdout, lists as one document a line, errors as
// {"error":{…}} on stderr; with -o yaml the same documents in YAML, those of lists behind "---"; and the exit codes 0 done, 1 the workflow failed or the request was refused, 2 wrong usage,
// 3 no connection, 4 timed out, 5 runs are parked, 6 somebody else was first, 75 a server has ended for a recycle,
// 130 interrupted while it waited.
package main

import "os"

func main() { os.Exit(run(os.Args[1:], os.Stdin, os.Stdout, os.Stderr)) }
