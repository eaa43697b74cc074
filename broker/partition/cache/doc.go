// Package cache has the runs of a partition that are in memory. The history is the truth; whatever
// is here can be read from it again.
//
// [Cache.Get] brings a run in: from its last record where enough was kept of it when it was
// passivated, many of them with one read, or from its latest snapshot. Runs that nothing happens to
// are passivated, and the least recently used are evicted, once nothing of them is on its way. A
// run whose history cannot be followed is read again and again, and does not go on until it can be.
//
// Everything is called on the loop of the partition, which makes the [Cache] and is its [Host];
// reads happen elsewhere.
package cache
