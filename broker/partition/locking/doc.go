// Package locking is the locks and state keys that the runs of a partition use: it changes the keys
// as the runs ask ([Keys.EnterLock], [Keys.LeaveLock], [Keys.AskState]), tells the runs what became
// of that, and heals what a crash has cut short ([Keys.JudgeLocksOf]).
//
// A key is changed by compare-and-set alone, through a queue of package keyed; the records
// themselves are changed by the pure packages locks and states. Nothing here is a lock of this
// process: everything runs on the loop of the partition, which made the [Keys] and is its [Host].
package locking
