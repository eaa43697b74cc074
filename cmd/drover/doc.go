// Command drover is the one binary of Drover: the server with all its roles, and the commands of
// its clients.
//
// Layout: groups.go lists all commands. They are in folders by noun: serve (server, dev, worker),
// modules (init), workflows, flows, schedules (with always-on and once), namespaces (with types,
// task lists and locks), nodes (with claims, drain and recycle) and check (audit, verify, doctor,
// auth). A folder has one file for each command and exports a function for each. Folder cli holds
// what all of them share: global flags, connection, output, exit codes.
//
// What scripts may rely on: with --json one stable document on stdout, lists as one document a
// line, errors as {"error":{…}} on stderr; with -o yaml the same documents in YAML, those of lists
// after "---"; and the exit codes 0 done, 1 the workflow failed or the request was refused, 2 wrong
// usage, 3 no connection, 4 timed out, 5 runs are parked, 6 somebody else was first, 75 a server
// has ended for a recycle, 130 interrupted while it waited.
package main
