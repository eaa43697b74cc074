// Package e2e tests the built binary as its users run it: as processes, on loopback ports, with
// kill -9 and SIGSTOP.
//
// It holds tests only. Each run of the test binary builds cmd/drover once, plainly: what is raced
// here is the test and its workers, and the race detector's turn for the server is in the packages'
// own tests. Child processes are the binary, or the test binary itself in one of its roles: a bare
// NATS server, deciders and activity workers on the client API, and those of package stranger,
// which know nothing of ours.
//
// Folder testdata/stores holds what servers left over that were killed: today's takes over each of
// them. A store that was committed stays as it is. TestStores makes one more with -stores.make
// NAME, when formats have changed.
//
// Rules that every test keeps:
//   - It waits for outcomes, never for time: the long polls of the API, a followed history, a line
//     that a process prints. Where a crash is to come at random, its place is an amount of progress
//     that comes from a seed, and the seed is printed.
//   - It ends by checking every history that it made, with broker/checker and with "drover verify".
//   - A failed test keeps its folder, with stores and logs, and says where it is.
package e2e
