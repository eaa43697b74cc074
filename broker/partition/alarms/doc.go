// Package alarms keeps one message in the alarm stream of a partition for each open run that
// somebody must look at later ([Alarms.Cover]), and takes the alarms that are due from the timer
// workers ([Alarms.Take]). Its state beside the runs is package deadlines.
//
// Invariants:
//
//   - What a run waits for is released only when its alarm is armed early enough, or the run is
//     closed: if the owner dies, the next one finds it by the alarm (P-1).
//   - An alarm is published over the one that is known to be there, never over another (P-10).
//   - The worker that brings an alarm keeps it until the owner has answered that it is not needed
//     any more.
//
// Everything runs on the loop of the partition, which made the [Alarms] and is its [Host].
package alarms
