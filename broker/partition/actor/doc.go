// Package actor is what the owner of a partition knows of one workflow id: its latest run ([Run]),
// whether that is read ([Load]) and where it stands with its decider ([Asking]), the messages on
// their way to it ([Message]), what they have caused and what of that waits to be written ([Group],
// [Commit]), and the decision task ([Ask]), the activity tasks ([Offer]) and the alarm ([Alarm])
// that are under way.
//
// It has data and what follows from it, and does nothing: it sends, reads and writes nothing, and
// starts no goroutine. The partition and its parts do, on the partition's loop; nothing here may be
// used from anywhere else.
package actor
