// Package timers rings alarms: it tells the owner of each run of its earliest deadline, when it is
// due and not before, or puts that into the run's inbox.
//
// A run has at most one alarm, the last message on its subject in the partition's alarm stream; the
// owner of the partition writes it, and judges every ring against the state of the run. A [Worker]
// holds the claim on the alarms of as many partitions as it gets, and any number of workers may
// run: who holds a partition's claim rings for it.
//
// It is for the binary. It needs the claims bucket, the right to read and delete in the alarm
// streams, and the right to ask owners, and to publish rings and dead letters.
//
// Partitions are spread over the live workers by rendezvous hashing, as over brokers; one that
// leaves as planned gives its partitions up in milliseconds. A partition has one worker at a time,
// and whichever it is, the alarms are the same.
//
// # What is promised
//
//   - Never early: a ring is sent when an estimate of the server's clock that is never ahead says
//     so (P-15). The local clock only measures spans of time, so its setting and its steps do not
//     matter.
//   - Soon: one timer waits for the earliest alarm, nothing polls. It may be some 10 ms late while
//     garbage is collected.
//   - At least once: an alarm is deleted when the owner says that it is not needed any more, or
//     when its ring is stored in the inbox: by sequence and never by subject, so an alarm that
//     replaced it meanwhile survives (P-10). A ring that the owner does not answer within two
//     seconds goes into the inbox; one whose fate is unknown is sent again. A ring that comes
//     twice, or for an alarm that the owner has deleted, finds nothing to do.
//   - After the rings: deletions wait while there are rings to send. Alarms before the first one
//     that is needed are purged.
//   - An alarm that cannot be read becomes a dead letter and is deleted.
//   - When the claim is lost, ringing stops at once. Whoever takes it next reads the stream from
//     its beginning.
//
// The server's own message schedules were left: they tick every 250 ms.
package timers
