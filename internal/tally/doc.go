// Package tally counts: durations in histograms, and anything by a label of which there may be
// many. It is for code that runs often and that knows no monitoring system: whoever shows the
// numbers reads them off.
//
// Everything may be used by any goroutine, is ready as its zero value where nothing else is said,
// and costs one or two atomic additions.
package tally
