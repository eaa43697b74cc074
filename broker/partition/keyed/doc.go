// Package keyed changes keys of a bucket by compare-and-set alone. The owner of a partition uses
// it for locks and for state keys (ADR 25, 29): the owners of several partitions change these keys
// at the same time, and any of them may end or be suspended between two writes.
//
// A [Queue] takes what runs want of a key. It reads the key from its leader, lets its [Bucket]
// apply all that waits, and writes the key once. If somebody was faster, it reads the key again.
//
// Invariants:
//
//   - A key has one try at a time. What comes meanwhile waits and is applied with the next one, in
//     the order of the callers.
//   - The host's claim is checked before each read and before each write.
//   - A try that repeats another, or that repeats what a former owner may have done, also reads the
//     partition's fence, after it has read the key. What a later owner entered is in the key as
//     read, or its fence is found.
//   - A write replaces only what the try has read. One that is on its way when the claim ends is
//     not held back.
//   - A write whose answer is lost is tried again. [Bucket.Apply] finds in the record what is
//     there already.
//   - An owner that may not write leaves its keys as they are. The next owner repeats what the
//     histories of its runs ask for.
//
// All methods of a queue, and those of its bucket without a context, run on the loop of the owner.
package keyed
