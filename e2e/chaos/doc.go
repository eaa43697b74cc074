// Package chaos puts Drover under load, breaks what can break, and proves from what the clients saw
// and from what is stored that nothing was lost, doubled, forked or forgotten.
//
// It is three things. The recorder ([Recorder]) writes down every operation of a client: when it
// was called and answered, and whether its outcome is known. The models ([Check]) say which of such
// records a correct service can have produced; they know nothing of how it works, and the
// linearizability checker porcupine judges. The tests run the processes, inject faults by a seeded
// schedule, and check the models, every history and every stream that is left over.
//
// Invariants:
//   - An operation is recorded once, before its caller does anything with the outcome. One that got
//     no answer is unknown: it may have happened, may happen later, or never.
//   - The models judge recorded operations only. So a recording can be judged again, on another
//     day.
//   - A run is repeated by its seed: the schedule of faults and the load come from it. What the
//     processes make of it does not.
//   - Faults are injected from outside: signals to processes and package faultproxy. Nothing in the
//     product knows of them.
//
// Run it with "make chaos" or "make soak DURATION=8h". It is for tests alone.
package chaos
