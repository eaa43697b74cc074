// Package drovertest lets programs test their workflows against the real Drover: NATS server,
// broker, timers and the master's look after lost workers, in the test's own process, with one
// call.
//
//	func TestReminder(t *testing.T) {
//		drovertest.Run(t, nil, func(t *testing.T, e *drovertest.Env) {
//			deciders := e.Client.Deciders(nil)
//			deciders.Register("reminder", decider.Func(decide))
//			e.Go(deciders)
//			run, err := e.Client.Start(t.Context(), "reminder", "pay", nil)
//			if err != nil {
//				t.Fatal(err)
//			}
//			var sent string
//			e.Result(run, &sent) // waits 30 days in a fraction of a second
//		})
//	}
//
// For a workflow that has a contract, [Result] is the same with types.
//
// [Run] is for most tests: it has a clock of its own, see below. [Start] is the same in real time,
// with a NATS address, for tests with other processes and other languages. Only tests may import
// this package, since it links the NATS server; a program's own workers link none.
//
// When the test ends, every history that it made is checked against the rules that hold for all
// histories. A broken rule fails the test: it is a bug of Drover, never of a workflow. The log of a
// test that failed ends with the histories.
//
// # Workflow code
//
// Code of package workflow has to do the same each time that it is called. A test finds by itself
// when it does not: after about half of the decisions the run leaves the memory, so that its code
// is called again, and at the end of the test each history is replayed three times, with the newest
// code that [Env.Go] has got for its type, or else with an earlier one ([Options] has both).
// [Replay] does that with histories of runs elsewhere, which are kept in files.
//
// # Virtual time
//
// Inside [Run] the package time is virtual ([testing/synctest]): the clock begins at midnight UTC
// of 2000-01-01, stands still while anything runs, and jumps to the next timer when all goroutines
// wait. Timers, retries, timeouts and backoffs are exact, and the same on a slow machine.
//
// Prefer [Env.Sleep], [Env.Wait], [Env.Result], [Result] and [Env.Await] to time.Sleep and to
// waiting by the client. While nothing is due they stop everything: activity workers, timers,
// broker and NATS server stop in good order, the clock jumps, and eight seconds before the next
// alarm all of them run again. A leap costs less than 100 ms however long it is. Waiting otherwise
// costs some 20 s a day, for heartbeats and renewals, and an activity that runs for days is waited
// for in that way. Under the race detector Go 1.26 may crash after hours of it (golang/go#78156).
// Whoever uses the client during a leap, from another goroutine, ends it and is served within a few
// seconds of virtual time.
//
// Virtual time ends at the bubble's border. Do not wait inside for anything that comes from
// outside: sockets, pipes to other processes, goroutines or channels from before the call. While a
// goroutine waits for one the clock stands still. Replace network services by fakes: a function, or
// net.Pipe. A mutex that is held over a sleep stops the clock as well; use a channel. Subtests
// (t.Run) and t.Parallel are for the outside; t.Context, t.Cleanup and t.TempDir work inside. All
// goroutines must end with the test: those that [Env.Go] started do, others should obey t.Context.
//
// One Run is under way in a process at a time, since the NATS client keeps a pool of timers for the
// whole process, which must not pass from one clock to another. Parallel tests wait for each other.
// For the same reason, do not call NATS's Flush, NextMsg and Request with a duration outside while
// a Run is under way; the forms with a context are free of it.
//
// # What is not there
//
// Nothing is purged: what has closed stays, whatever its retention says, and [drover.Run.Retention]
// finds nobody who answers, as do the client's methods about namespaces. Schedules do not fire, and
// nobody works on the list drover: register a function for the activity drover.once that says what
// the test wants.
//
// # Restarts
//
// [Env.Restart] and [Env.Crash] stop everything but the test's own workers and client, and start it
// again on the same store, so that a test can see how its workers take it.
package drovertest
