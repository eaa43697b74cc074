//go:build race

package flows_test

// stride is how many messages lie between two crashes that are tried. The race detector makes each try ten times as long; it looks for
// races of the processes, and for these it does not matter where they die.
const stride = 6

// between is the time between two tries for a lock: that of the file, or ten times as long.
const between = "100ms"
