// Package history is what a decider worker knows of the histories of its runs: the window of a
// task, the pages that it reads through the API, and the cache of what it has read (P-11).
//
// Invariants:
//
//   - Nothing after the DeciderStarted of a task is ever shown.
//   - What is cached is used only if the broker proves that the last committed reply of the run is
//     the one that this worker sent.
//   - What the cache keeps of a run is its events or nothing of them; the proof of its last replies
//     stays as long as the run does.
//   - An event is read once for a task.
package history
