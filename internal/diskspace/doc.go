// Package diskspace asks the operating system how full the file system of a folder is: for what a
// server tells of its node, and for how much its streams may take. Where that cannot be found it
// says 0, and callers do without. And it says how soon what is free may be full.
//
// A file system can also run out of inodes, while most of its bytes are free: then no file can be
// made.
package diskspace
