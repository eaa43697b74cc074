//go:build !race

package flows_test

// stride is how many messages lie between two crashes that are tried. A crash after one message and
// a crash before the next leave the same stored: with every other message, tried both ways, all that
// can be left stored is tried.
const stride = 2

// between is the time between two tries for a lock: that of the file.
const between = "10ms"
